import { expect, test } from 'vitest'
import { memoryStore } from '../../src/adapters/memory/object-store.ts'
import { orchestration } from '../../src/domain/index.ts'
import { ScheduleTicked } from '../../src/domain/schedules/schedule-ticked.event.ts'
import { decodeSegment } from '../../src/engine/ledger/segment.ts'
import { View } from '../../src/engine/loop/view.ts'
import { Paths } from '../../src/engine/paths.ts'
import { MINUTE_MS, SECOND_MS } from '../../src/lib/time.ts'
import { type NewEvent, newEvent } from '../../src/model/event.ts'
import { historyIndex } from '../../src/model/system-tables.ts'
import type { ObjectStore } from '../../src/ports/object-store.ts'
import { runRequested } from '../../src/server/workspace/requests.ts'
import { failure, scope, World } from './world.ts'

const paths = new Paths(scope)

async function listed(store: ObjectStore, prefix: string): Promise<string[]> {
  const found: string[] = []
  for await (const { path } of store.list(prefix)) found.push(path)
  return found
}

/** The types of the events in each segment, in the order in which they were written. */
async function segments({ store }: World): Promise<string[][]> {
  const read = async (path: string) => decodeSegment((await store.get(path))!, path, scope)
  const decoded = await Promise.all((await listed(store, paths.ledger)).map(read))
  return decoded.map((events) => events.map((event) => event.event_type))
}

test('[F2] a run that fails writes down what was asked, decided and reported; readiness, skips and ends are rows', async () => {
  const world = await World.open({
    script: ({ asset_key }) => (asset_key === 'b' ? { result: failure({ retryable: false }) } : {}),
  })
  await world.define({ a: [], b: ['a'], c: ['b'], d: ['c'] })
  const run = await world.request('r1')
  await world.clock.advance(SECOND_MS)
  expect(world.run(run)?.state).toBe('FAILED')
  expect(world.states(run)).toEqual({ a: 'SUCCEEDED', b: 'FAILED', c: 'SKIPPED', d: 'SKIPPED' })
  expect(await segments(world)).toEqual([
    ['AssetsDefined'],
    ['RunRequested', 'PlanCreated', 'DispatchRequested'],
    ['TaskFinished', 'DispatchRequested'],
    ['TaskFinished'],
  ])
})

test('[L1] a tick and the run that it asks for are one segment, which has both or is not there', async () => {
  const store = memoryStore()
  let isFull = false
  const create: ObjectStore['create'] = async (path, bytes) => {
    if (isFull && path.startsWith(paths.ledger)) await new Promise(() => undefined)
    return await store.create(path, bytes)
  }
  const world = await World.open({ store: { ...store, create } })
  await world.define({ a: [] })
  const tick = (hour: number): NewEvent[] => {
    const tick_id = `nightly:${hour}`
    const { event } = runRequested(
      scope,
      { id: 'secret-1', value: 'not a secret' },
      { run_key: `sched:${tick_id}`, asset_selection: ['a'], source: { type: 'schedule', schedule_id: 'nightly', tick_id } },
    )
    const ticked = newEvent(ScheduleTicked, {
      tick_id,
      schedule_id: 'nightly',
      scheduled_for: `2025-01-15T0${hour}:00:00.000Z`,
      definition_version: 'v1',
      asset_selection: ['a'],
      status: 'triggered',
      run_key: `sched:${tick_id}`,
      request_fingerprint: 'f1',
    })
    return [ticked, event]
  }
  await world.orchestrator.submit(tick(1))
  await world.clock.advance(SECOND_MS)
  isFull = true
  void world.orchestrator.submit(tick(2)).catch(() => undefined)
  await world.clock.advance(SECOND_MS)
  isFull = false
  await world.crash()
  const withTicks = (await segments(world)).filter((types) => types.includes('ScheduleTicked'))
  expect(withTicks).toEqual([['ScheduleTicked', 'RunRequested', 'PlanCreated', 'DispatchRequested']])
})

test('[L4] the loop writes one segment at a time, and what is submitted meanwhile is the next', async () => {
  const store = memoryStore()
  let [inFlight, most] = [0, 0]
  const gates: PromiseWithResolvers<void>[] = []
  const create: ObjectStore['create'] = async (path, bytes) => {
    if (!path.startsWith(paths.ledger)) return await store.create(path, bytes)
    most = Math.max(most, ++inFlight)
    const gate = Promise.withResolvers<void>()
    gates.push(gate)
    await gate.promise
    inFlight -= 1
    return await store.create(path, bytes)
  }
  const world = await World.open({ store: { ...store, create } })
  const defined = world.define({ a: [] })
  await world.clock.advance(10)
  const asked = Array.from({ length: 20 }, (_, i) => world.request(`r${i}`))
  for (let turn = 0; turn < 100; turn++) {
    gates.shift()?.resolve()
    await world.clock.advance(10)
  }
  await Promise.all([defined, ...asked])
  expect(most).toBe(1)
  expect((await segments(world))[1]?.filter((type) => type === 'RunRequested')).toHaveLength(20)
})

test('[D5] an attempt that ends within half a second is written down once, a longer one also when it began', async () => {
  const world = await World.open({ script: ({ asset_key }) => ({ ms: asset_key === 'brief' ? 499 : 501 }) })
  await world.define({ brief: [], long: [] })
  for (const name of ['brief', 'long']) await world.request(name, name)
  await world.clock.advance(SECOND_MS)
  const types = (await segments(world)).flat()
  expect(types.filter((type) => type === 'TaskStarted')).toHaveLength(1)
  expect(types.filter((type) => type === 'TaskFinished')).toHaveLength(2)
})

test('[D5] the half second of each attempt is its own, though another began before it', async () => {
  const world = await World.open({ script: ({ asset_key }) => ({ ms: asset_key === 'brief' ? 499 : 800 }) })
  await world.define({ brief: [], long: [] })
  const long = await world.request('long', 'long')
  await world.clock.advance(300)
  await world.request('brief', 'brief')
  await world.clock.advance(400)
  expect(world.task(long, 'long')?.state).toBe('RUNNING')
  await world.clock.advance(SECOND_MS)
  const types = (await segments(world)).flat()
  expect(types.filter((type) => type === 'TaskStarted')).toHaveLength(1)
  expect(types.filter((type) => type === 'TaskFinished')).toHaveLength(2)
})

test('[D5] the start of a long attempt is on record while it runs, though another began before it', async () => {
  const world = await World.open({ script: () => ({ ms: MINUTE_MS }) })
  await world.define({ first: [], second: [] })
  const first = await world.request('first', 'first')
  await world.clock.advance(300)
  const second = await world.request('second', 'second')
  await world.clock.advance(SECOND_MS)
  expect(world.states(first)).toEqual({ first: 'RUNNING' })
  expect(world.states(second)).toEqual({ second: 'RUNNING' })
  expect((await segments(world)).flat().filter((type) => type === 'TaskStarted')).toHaveLength(2)
})

test('[O4][I16] sweeps show every row again, and no attempt begins twice', async () => {
  const world = await World.open({ script: () => ({ ms: 30 * MINUTE_MS }) })
  await world.define({ a: [], b: [] })
  const run = await world.request('r1')
  // Before it is on record that the attempts have begun.
  for (let sweep = 0; sweep < 4; sweep++) {
    await world.clock.advance(50)
    world.orchestrator.loop.sweep()
  }
  await world.clock.advance(29 * MINUTE_MS)
  expect(world.workers.started).toHaveLength(2)
  await world.clock.advance(2 * MINUTE_MS)
  expect(world.run(run)?.state).toBe('SUCCEEDED')
  expect(world.workers.started).toHaveLength(2)
})

test('[R4] losing its worker costs a task neither an attempt nor a delay twenty times, and the next time an attempt', async () => {
  const world = await World.open({ script: () => ({ ms: 10 * MINUTE_MS }) })
  await world.define({ a: { retry: { max_attempts: 1, initial_ms: 5 * MINUTE_MS, jitter: false } } })
  const run = await world.request('r1')
  await world.clock.advance(SECOND_MS)
  for (let lost = 1; lost <= 20; lost++) {
    await world.crash()
    await world.clock.advance(SECOND_MS)
    expect(world.task(run, 'a')).toMatchObject({ state: 'RUNNING', attempt: lost + 1 })
  }
  await world.crash()
  await world.clock.advance(SECOND_MS)
  expect(world.run(run)?.state).toBe('FAILED')
})

test('[S1] the base after the end of a run moves its rows to history, once; unfinished work stays in memory', async () => {
  const world = await World.open({ script: ({ asset_key }) => ({ ms: asset_key === 'slow' ? 60 * MINUTE_MS : 0 }) })
  await world.define({ quick: [], slow: [] })
  const { compactor } = world.orchestrator.loop
  const ended: string[] = []
  const history: string[][] = []
  const unfinished = await world.request('unfinished', 'slow')
  for (const name of ['first', 'second']) {
    ended.push(await world.request(name, 'quick'))
    await world.clock.advance(SECOND_MS)
    await compactor.publish({ kind: 'base' })
    await compactor.publish({ kind: 'base' })
    history.push((await listed(world.store, `${paths.state}tasks/`)).filter((path) => path.includes('/history/')))
  }
  expect(history.map((files) => files.length)).toEqual([1, 2])
  expect(history[1]).toEqual(expect.arrayContaining(history[0]!))
  const view = await View.open({ store: world.store, scope, registry: orchestration, clock: world.clock })
  for (const run of ended) {
    expect(world.run(run)).toBeUndefined()
    expect(await view.lookup(historyIndex, 'runs', run)).toBeDefined()
  }
  expect(world.run(unfinished)?.state).toBe('RUNNING')
})
