import { describe, expect, test } from 'vitest'
import { memoryStore } from '../../src/adapters/memory/object-store.ts'
import { orchestration } from '../../src/domain/index.ts'
import { partitionStatus } from '../../src/domain/partitions/partition-status.table.ts'
import { RunCancelRequested } from '../../src/domain/runs/run-cancel-requested.event.ts'
import { Ledger } from '../../src/engine/ledger/ledger.ts'
import { View } from '../../src/engine/loop/view.ts'
import { ServoError } from '../../src/lib/error.ts'
import { MINUTE_MS, SECOND_MS } from '../../src/lib/time.ts'
import { ulidSource } from '../../src/lib/ulid.ts'
import { newEvent } from '../../src/model/event.ts'
import type { ObjectStore } from '../../src/ports/object-store.ts'
import { countingStore } from '../../src/testing/counting-store.ts'
import { reportFact } from '../../src/testing/facts.ts'
import { seededBytes } from '../../src/testing/seeded-bytes.ts'
import { interceptedStore } from '../engine/intercepted-store.ts'
import { failure, type Graph, scope, World } from './world.ts'

const chainOf = (length: number): Graph =>
  Object.fromEntries(Array.from({ length }, (_, i) => [`c${i}`, i === 0 ? [] : [`c${i - 1}`]]))

describe('a run', () => {
  test('is planned, dispatched and finished in the order of its edges', async () => {
    const world = await World.open()
    await world.define({ a: [], b: ['a'], c: ['a'], d: ['b', 'c'] })
    const run = await world.request('r1')
    await world.clock.advance(SECOND_MS)
    expect(world.run(run)).toMatchObject({ state: 'SUCCEEDED', tasks_total: 4, tasks_succeeded: 4 })
    const order = world.workers.started.map((envelope) => envelope.asset_key)
    expect(order[0]).toBe('a')
    expect(order.at(-1)).toBe('d')
    expect(await world.problems()).toEqual([])
  })

  test('[O1] costs one durable write per hop of a chain: the end of a task and the dispatch of the next are one segment', async () => {
    const store = countingStore(memoryStore())
    const world = await World.open({ store, options: { publishDelayMs: 10 * MINUTE_MS } })
    await world.define(chainOf(20))
    await world.clock.advance(1)
    store.reset()
    const run = await world.request('r1')
    await world.clock.advance(SECOND_MS)
    expect(world.run(run)?.state).toBe('SUCCEEDED')
    // The request, its plan and the first dispatch; then one per task.
    expect(store.requests.map(({ method }) => method)).toEqual(Array.from({ length: 21 }, () => 'create'))
  })

  test('that asks for an asset nobody knows ends at once, and says what to do', async () => {
    const world = await World.open()
    await world.define({ a: [] })
    const run = await world.request('r1', 'key:nobody')
    expect(world.run(run)).toMatchObject({ state: 'FAILED', tasks_total: 0 })
    expect(world.run(run)?.error).toMatch(/key:nobody/)
  })

  test('[T1] that is asked for twice is one run', async () => {
    const world = await World.open()
    await world.define({ a: [] })
    const [one, other] = await Promise.all([world.request('same'), world.request('same')])
    expect(one).toBe(other)
    await world.clock.advance(SECOND_MS)
    expect(world.workers.started).toHaveLength(1)
  })
})

describe('a task that fails', () => {
  const retry = { max_attempts: 3, backoff: 'exponential', initial_ms: 1_000, max_ms: 60_000, jitter: false } as const

  test('[T6][R1][I8] is tried again after its backoff, and its attempts are numbered without a gap', async () => {
    const world = await World.open({ script: ({ attempt }) => (attempt < 3 ? { result: failure() } : {}) })
    await world.define({ a: { retry } })
    const run = await world.request('r1')
    await world.clock.advance(999)
    expect(world.task(run, 'a')).toMatchObject({ state: 'RETRY_WAIT', attempt: 1 })
    await world.clock.advance(1_000)
    expect(world.task(run, 'a')).toMatchObject({ state: 'RETRY_WAIT', attempt: 2 })
    await world.clock.advance(2_000)
    expect(world.run(run)?.state).toBe('SUCCEEDED')
    expect(world.attempts(run, 'a').map(({ attempt, outcome }) => [attempt, outcome])).toEqual([
      [1, 'FAILED'],
      [2, 'FAILED'],
      [3, 'SUCCEEDED'],
    ])
    expect(await world.problems()).toEqual([])
  })

  test('[T8] for good skips what is below it and leaves the rest alone', async () => {
    const world = await World.open({ script: ({ asset_key }) => (asset_key === 'b' ? { result: failure() } : {}) })
    await world.define({ a: [], b: ['a'], below: ['b'], beside: ['a'] })
    const run = await world.request('r1')
    await world.clock.advance(SECOND_MS)
    expect(world.states(run)).toEqual({ a: 'SUCCEEDED', b: 'FAILED', below: 'SKIPPED', beside: 'SUCCEEDED' })
    expect(world.run(run)?.state).toBe('FAILED')
  })

  test('[R1] fatally is not tried again', async () => {
    const world = await World.open({ script: () => ({ result: failure({ category: 'fatal', retryable: false }) }) })
    await world.define({ a: { retry } })
    const run = await world.request('r1')
    await world.clock.advance(MINUTE_MS)
    expect(world.workers.started).toHaveLength(1)
    expect(world.run(run)?.state).toBe('FAILED')
  })

  test('[L6] because what it reports is larger than a fact can be says so, and is not tried again', async () => {
    const output = { metadata: { text: 'x'.repeat(2 << 20) } }
    const world = await World.open({ script: () => ({ result: { outcome: 'SUCCEEDED', output } }) })
    await world.define({ a: { retry }, below: ['a'] })
    const run = await world.request('r1')
    await world.clock.advance(SECOND_MS)
    expect(world.states(run)).toEqual({ a: 'FAILED', below: 'SKIPPED' })
    expect(world.attempts(run, 'a')).toMatchObject([{ attempt: 1, outcome: 'FAILED', error_category: 'invalid' }])
    expect(world.task(run, 'a')?.error_message).toMatch(
      /^a reported 2\.0 MiB of metadata; .* may have 1 MiB together\. Keep facts/,
    )
    expect(await world.problems()).toEqual([])
  })

  test('[D7] because it reports what it cannot have made says so, and is not tried again', async () => {
    const result = { outcome: 'SUCCEEDED' as const, materialization_id: 'm1' }
    const theirs = { ...result, output: { path: 'data/other/_/m1.parquet' } }
    const own = { ...result, output: { path: 'data/good/_/m1.parquet' } }
    const world = await World.open({ script: ({ asset_key }) => ({ result: asset_key === 'a' ? theirs : own }) })
    await world.define({ a: { retry }, good: { retry }, below: ['a'] })
    const run = await world.request('r1')
    await world.clock.advance(MINUTE_MS)
    expect(world.states(run)).toEqual({ a: 'FAILED', good: 'SUCCEEDED', below: 'SKIPPED' })
    expect(world.attempts(run, 'a')).toMatchObject([{ attempt: 1, outcome: 'FAILED', error_category: 'invalid', output: null }])
    expect(world.task(run, 'a')?.error_message).toMatch(/"data\/other\/_\/m1\.parquet" is not below data\/a\/_\//)
  })
})

describe('limits', () => {
  test('[D1] no more tasks run at once than there is capacity, and all run in the end', async () => {
    const world = await World.open({ capacity: 3, script: () => ({ ms: 100 }) })
    await world.define(Object.fromEntries(Array.from({ length: 10 }, (_, i) => [`a${i}`, []])))
    const run = await world.request('r1')
    await world.clock.advance(SECOND_MS)
    expect(world.workers.most).toBe(3)
    expect(world.run(run)?.state).toBe('SUCCEEDED')
  })

  test('[D1][D2] a pool holds back its own tasks and no others', async () => {
    const running: string[] = []
    const world = await World.open({
      script: ({ asset_key }) => {
        running.push(asset_key)
        return { ms: 100 }
      },
    })
    await world.define({ p1: { pool: 'narrow' }, p2: { pool: 'narrow' }, p3: { pool: 'narrow' }, free: [] }, { narrow: 1 })
    await world.request('r1')
    await world.clock.advance(50)
    expect(running.sort()).toEqual(['free', 'p1'])
    await world.clock.advance(100)
    expect(running).toHaveLength(3)
  })

  test('[D1] the more urgent run goes first when there is not room for all', async () => {
    const world = await World.open({ capacity: 1, script: () => ({ ms: 10 }) })
    await world.define({ a: [], b: [], c: [], d: [] })
    await world.request('blocker', 'key:a')
    // One waits beside the busy worker and can no longer be overtaken.
    await world.request('beside', 'key:d')
    await world.request('low', 'key:b', { priority: -5 })
    await world.request('high', 'key:c', { priority: 5 })
    await world.clock.advance(SECOND_MS)
    expect(world.workers.started.map(({ asset_key }) => asset_key)).toEqual(['a', 'd', 'c', 'b'])
  })
})

describe('a cancelled run', () => {
  const script = ({ asset_key }: { asset_key: string }) => ({ ms: MINUTE_MS, deaf: asset_key === 'deaf' })

  test('[C2][C3] ends at once what waits, soon what runs, and after the grace what does not listen; no retry starts', async () => {
    const world = await World.open({
      capacity: 2,
      script,
      options: { settings: () => ({ timing: { cancel_grace_ms: 5 * SECOND_MS } }) },
    })
    await world.define({ deaf: [], good: [], next: [], queued: [], below: ['good'] })
    const run = await world.request('r1')
    await world.clock.advance(SECOND_MS)
    expect(world.states(run)).toMatchObject({ deaf: 'RUNNING', good: 'RUNNING', next: 'DISPATCHED', queued: 'READY' })
    await world.cancel(run)
    expect(world.states(run)).toMatchObject({ queued: 'CANCELLED', below: 'CANCELLED' })
    await world.clock.advance(SECOND_MS)
    expect(world.states(run)).toMatchObject({ good: 'CANCELLED', next: 'CANCELLED', deaf: 'RUNNING' })
    await world.clock.advance(5 * SECOND_MS)
    expect(world.run(run)?.state).toBe('CANCELLED')
    await world.clock.advance(10 * MINUTE_MS)
    expect(world.workers.started).toHaveLength(2)
    expect(await world.problems()).toEqual([])
  })

  test('[C2] while a task waits for its retry: the retry never starts', async () => {
    const world = await World.open({ script: () => ({ result: failure() }) })
    await world.define({ a: { retry: { max_attempts: 5, initial_ms: 10_000 } } })
    const run = await world.request('r1')
    await world.clock.advance(SECOND_MS)
    expect(world.task(run, 'a')?.state).toBe('RETRY_WAIT')
    await world.cancel(run)
    expect(world.run(run)?.state).toBe('CANCELLED')
    await world.clock.advance(10 * MINUTE_MS)
    expect(world.workers.started).toHaveLength(1)
  })
})

describe('after a crash', () => {
  test('[R4][W2][V1] a run goes on where it was: what ran is tried again without costing an attempt, what was done stays done', async () => {
    const world = await World.open({ script: ({ asset_key }) => ({ ms: asset_key === 'b' ? 10 * SECOND_MS : 0 }) })
    await world.define(chainOf(3))
    await world.define({ a: [], b: ['a'], c: ['b'] })
    const run = await world.request('r1', 'key:a or key:b or key:c')
    await world.clock.advance(2 * SECOND_MS)
    expect(world.states(run)).toEqual({ a: 'SUCCEEDED', b: 'RUNNING', c: 'BLOCKED' })
    await world.restart()
    await world.clock.advance(12 * SECOND_MS)
    expect(world.run(run)?.state).toBe('SUCCEEDED')
    expect(world.workers.started.map(({ asset_key }) => asset_key)).toEqual(['b', 'c'])
    expect(world.attempts(run, 'b').map(({ outcome, error_category }) => [outcome, error_category])).toEqual([
      ['FAILED', 'lost'],
      ['SUCCEEDED', null],
    ])
    expect(await world.problems()).toEqual([])
  })

  test('[C4] a run that was cancelled meanwhile ends, and nothing of it is begun again', async () => {
    const world = await World.open({ capacity: 1, script: () => ({ ms: 10 * MINUTE_MS }) })
    await world.define({ began: [], dispatched: [], ready: [], blocked: ['began'] })
    const run = await world.request('r1')
    await world.clock.advance(SECOND_MS)
    const states = Object.values(world.states(run)).sort()
    expect(states).toEqual(['BLOCKED', 'DISPATCHED', 'READY', 'RUNNING'])
    const ulid = ulidSource(() => world.clock.now(), seededBytes(3))
    const beside = new Ledger({ store: world.store, scope, clock: world.clock, ulid, source: 'beside' })
    await beside.append([newEvent(RunCancelRequested, { run_id: run, requested_by: 'ada' })])
    expect(world.run(run)?.cancel_requested_at, 'the old process has not heard of it').toBeNull()
    await world.crash(SECOND_MS)
    await world.clock.advance(MINUTE_MS)
    expect(world.run(run)?.state).toBe('CANCELLED')
    expect(new Set(Object.values(world.states(run)))).toEqual(new Set(['CANCELLED']))
    expect(world.attempts(run, 'began')).toHaveLength(1)
    expect(world.workers.started).toEqual([])
    expect(await world.problems()).toEqual([])
  })

  test('[W4][I9] what the old process says of an attempt that was given up changes nothing', async () => {
    const world = await World.open({ script: () => ({ ms: 5 * SECOND_MS }) })
    await world.define({ a: [] })
    const run = await world.request('r1')
    await world.clock.advance(SECOND_MS)
    const old = world.orchestrator
    await world.restart()
    await world.clock.advance(SECOND_MS)
    expect(world.task(run, 'a')).toMatchObject({ attempt: 2 })
    // The old process was only frozen: its worker ends and it reports.
    await world.clock.advance(20 * SECOND_MS)
    await world.orchestrator.loop.catchUp()
    expect(world.run(run)?.state).toBe('SUCCEEDED')
    expect(world.attempts(run, 'a').map(({ outcome }) => outcome)).toEqual(['FAILED', 'SUCCEEDED'])
    await old.close()
  })

  test('[O3][R3][V2] an alarm that was set before the crash goes off after it, though nothing else happens', async () => {
    const world = await World.open({ script: ({ attempt }) => (attempt === 1 ? { result: failure() } : {}) })
    await world.define({ a: { retry: { max_attempts: 2, initial_ms: 60_000, jitter: false } } })
    const run = await world.request('r1')
    await world.clock.advance(SECOND_MS)
    await world.restart()
    await world.clock.advance(2 * MINUTE_MS)
    expect(world.run(run)?.state).toBe('SUCCEEDED')
  })
})

test('results that come faster than they can be written wait for it, and none is lost or made twice', async () => {
  const store = memoryStore()
  let gate: Promise<void> | undefined
  const slow: ObjectStore = {
    ...store,
    create: async (...args) => {
      await gate
      return await store.create(...args)
    },
  }
  // More than may wait for a write in flight.
  const names = Array.from({ length: 160 }, (_, i) => `a${i}`)
  const world = await World.open({
    store: slow,
    capacity: names.length,
    script: () => ({ ms: 50, result: { outcome: 'SUCCEEDED', output: { metadata: { text: 'x'.repeat(1_000_000) } } } }),
  })
  await world.define(Object.fromEntries(names.map((name) => [name, []])))
  const run = await world.request('r1')
  await world.clock.advance(1)
  const opened = Promise.withResolvers<void>()
  gate = opened.promise
  await world.clock.advance(2 * MINUTE_MS)
  expect(world.run(run)?.state).toBe('RUNNING')
  gate = undefined
  opened.resolve()
  await world.clock.advance(SECOND_MS)
  expect(world.run(run)).toMatchObject({ state: 'SUCCEEDED', tasks_succeeded: names.length })
  expect(world.workers.started).toHaveLength(names.length)
})

test('that an attempt has begun is written later when the ledger is busy', async () => {
  const world = await World.open({ script: () => ({ ms: 30 * MINUTE_MS }) })
  await world.define({ a: [] })
  const run = await world.request('r1')
  const { loop } = world.orchestrator
  const submit = loop.submit.bind(loop)
  let refused = 0
  loop.submit = (events) => {
    if (refused++ < 3) throw new ServoError('unavailable', 'ledger_busy', 'much is waiting to be written')
    return submit(events)
  }
  await world.clock.advance(2 * SECOND_MS)
  expect(refused).toBe(4)
  expect(world.task(run, 'a')?.state).toBe('RUNNING')
})

describe('a ledger that cannot be written', () => {
  /** A store whose ledger is away while `isAway`, and the segments that were asked for meanwhile. */
  function losing() {
    const inner = memoryStore()
    const state = { isAway: false, refused: new Set<string>() }
    const store: ObjectStore = {
      ...inner,
      create: async (path, bytes) => {
        if (!state.isAway || !path.includes('/ledger/')) return await inner.create(path, bytes)
        state.refused.add(path)
        throw new ServoError('unavailable', 'away', 'the ledger is away')
      },
    }
    return { store, state }
  }

  test('[O5][V1] for a while costs nothing but time: what was asked for meanwhile is done, once', async () => {
    const { store, state } = losing()
    const trouble: unknown[] = []
    const world = await World.open({ store, options: { onTrouble: (error) => trouble.push(error) } })
    await world.define({ a: [], b: ['a'] })
    state.isAway = true
    const asked = world.request('r1')
    await world.clock.advance(SECOND_MS)
    expect(trouble).toMatchObject([{ code: 'away' }])
    state.isAway = false
    await world.clock.advance(SECOND_MS)
    const run = await asked
    await world.clock.advance(SECOND_MS)
    expect(world.run(run)?.state).toBe('SUCCEEDED')
    expect(world.workers.started.map(({ asset_key }) => asset_key)).toEqual(['a', 'b'])
    expect(await world.problems()).toEqual([])
  })

  test('[O5][V1] for so long that reopening fails again and again costs nothing but time either', async () => {
    const refusedAt = new Set<number>()
    let isAway = false
    const store = interceptedStore(memoryStore(), () => {
      if (!isAway) return
      refusedAt.add(world.clock.now())
      throw new ServoError('unavailable', 'away', 'the store is away')
    })
    const world = await World.open({ store })
    await world.define({ a: [] })
    isAway = true
    const asked = world.request('r1')
    await world.clock.advance(100)
    refusedAt.clear()
    await world.clock.advance(2 * SECOND_MS)
    expect(refusedAt.size, 'reopenings that failed').toBeGreaterThan(2)
    isAway = false
    await world.clock.advance(5 * SECOND_MS)
    expect(world.run(await asked)?.state).toBe('SUCCEEDED')
    expect(world.workers.started).toHaveLength(1)
    expect(await world.problems()).toEqual([])
  })

  test('[O5] breaks the loop, and nothing that was folded on top of what was lost is written afterwards', async () => {
    const { store, state } = losing()
    const stopped: unknown[] = []
    const world = await World.open({ store, options: { onTrouble: (error) => stopped.push(error) } })
    await world.define({ a: [] })
    const { loop } = world.orchestrator
    state.isAway = true
    const first = loop.submit([reportFact('first')]).catch((error: unknown) => error)
    await world.clock.advance(10)
    // Enough of them to be folded while the first is being written.
    const later = Array.from({ length: 10 }, (_, i) => loop.submit([reportFact(`later-${i}`)]).catch((error: unknown) => error))
    await world.clock.advance(SECOND_MS)
    for (const outcome of await Promise.all([first, ...later])) expect(outcome).toMatchObject({ code: 'away' })
    state.isAway = false
    loop.closeSegment()
    await expect(loop.compactor.publish()).rejects.toMatchObject({ code: 'away' })
    expect(state.refused.size).toBe(1)
    const { state: rows } = await (await View.open({ store, scope, registry: orchestration, clock: world.clock })).fresh()
    expect([...rows.coldTable(partitionStatus).recent.keys()]).toEqual([])
  })
})

test('[O7] an idle orchestrator asks nothing of the store', async () => {
  const store = countingStore(memoryStore())
  const world = await World.open({ store })
  await world.define({ a: [] })
  await world.request('r1')
  await world.clock.advance(11 * MINUTE_MS)
  store.reset()
  await world.clock.advance(60 * MINUTE_MS)
  expect(store.requests).toEqual([])
})
