import { describe, expect, test } from 'vitest'
import { memoryStore } from '../../src/adapters/memory/object-store.ts'
import type { DispatchEnvelope } from '../../src/contract/dispatch.ts'
import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../../src/lib/time.ts'
import { countingStore } from '../../src/testing/counting-store.ts'
import { made, Remote } from './remote.ts'
import { failure, World, type WorldOptions } from './world.ts'

async function openWorld(given: WorldOptions = {}): Promise<{ world: World; remote: Remote }> {
  const world = await World.open(given)
  return { world, remote: new Remote(world) }
}

describe('a worker that asks for work', () => {
  test('gets what names its queue, and what is made of it runs here', async () => {
    const { world, remote } = await openWorld()
    await world.define({ data: [], model: { queue: 'gpu', deps: [{ asset_key: 'data' }] }, report: ['model'] })
    const run = await world.request('r1')
    await world.clock.advance(SECOND_MS)
    expect(world.states(run)).toEqual({ data: 'SUCCEEDED', model: 'DISPATCHED', report: 'BLOCKED' })
    const [work] = (await remote.ask('w1', { queues: ['gpu'] })) as [DispatchEnvelope]
    expect(work).toMatchObject({
      asset_key: 'model',
      attempt: 1,
      callback_base_url: 'https://servo.example',
      task_token: expect.any(String),
      traceparent: expect.stringMatching(/^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/),
      payload: { heartbeat_timeout_sec: 60 },
    })
    expect(await remote.started(work, 'w1')).toEqual({ status: 200, body: { should_cancel: false } })
    expect(world.states(run)).toMatchObject({ model: 'RUNNING' })
    expect(await remote.heartbeat(work)).toEqual({ status: 200, body: { should_cancel: false } })
    expect(await remote.completed(work)).toEqual({ status: 200, body: { accepted: true } })
    await world.clock.advance(SECOND_MS)
    expect(world.run(run)?.state).toBe('SUCCEEDED')
    expect(world.workers.started.map(({ asset_key }) => asset_key)).toEqual(['data', 'report'])
    expect(world.attempts(run, 'model')).toMatchObject([
      { worker_id: 'w1', outcome: 'SUCCEEDED', materialization_id: made(work).materialization_id },
    ])
    expect(await world.problems()).toEqual([])
  })

  test('[D7] is told where to write, and can report nothing else', async () => {
    const { world, remote } = await openWorld()
    await world.define({ data: { queue: 'gpu' }, report: { inputs: { data: { asset_key: 'data' } } } })
    const run = await world.request('r1')
    const work = await remote.take('w1')
    expect(work.payload.output_folder).toBe('data/data/_/')
    const said = (path: string, more: object = {}) => ({ ...made(work), output: { path, ...more } })
    const { materialization_id } = made(work)
    for (const path of [
      '../../../../outside.parquet',
      'data/other/_/m1.parquet',
      'data/data/_/m1.parquet',
      `data/data/2025/${materialization_id}.parquet`,
      `data/data/_/${materialization_id}/*.parquet`,
    ]) {
      const { status, body } = await remote.completed(work, said(path))
      expect({ status, field: body.field }, path).toEqual({ status: 400, field: 'output.path' })
    }
    const own = `data/data/_/${materialization_id}.parquet`
    expect(await remote.completed(work, said(own, { rows: -1 }))).toMatchObject({ status: 400, body: { field: 'output.rows' } })
    // Nothing of all this was recorded, and the attempt goes on.
    expect(world.states(run)).toEqual({ data: 'RUNNING', report: 'BLOCKED' })
    expect(world.attempts(run, 'data')).toMatchObject([{ attempt: 1, outcome: null, output: null }])
    expect((await remote.completed(work, said(own, { rows: 1 }))).status).toBe(200)
    await world.clock.advance(SECOND_MS)
    expect(world.states(run)).toEqual({ data: 'SUCCEEDED', report: 'SUCCEEDED' })
    expect(world.workers.started[0]?.payload.inputs['data']?.values).toMatchObject([{ path: own }])
    expect(await world.problems()).toEqual([])
  })

  test('gets other work than the one that asks at the same time, the most urgent first, no more than it has room for', async () => {
    const { world, remote } = await openWorld()
    await world.define({ a: { queue: 'gpu' }, b: { queue: 'gpu', priority: 5 }, c: { queue: 'gpu' }, d: { queue: 'cpu' } })
    await world.request('r1')
    const [one, other] = await Promise.all([
      remote.ask('w1', { capacity: 1, queues: ['gpu'] }),
      remote.ask('w2', { capacity: 5, queues: ['gpu'] }),
    ])
    expect(one.map(({ asset_key }) => asset_key)).toEqual(['b'])
    expect(other.map(({ asset_key }) => asset_key).sort()).toEqual(['a', 'c'])
    expect(await remote.ask('w3', { queues: ['gpu', 'default'] })).toEqual([])
    expect((await remote.ask('w3')).map(({ asset_key }) => asset_key)).toEqual(['d'])
  })

  test('and waits hears of work as soon as there is some', async () => {
    const { world, remote } = await openWorld()
    await world.define({ a: { queue: 'gpu' } })
    const waiting = remote.ask('w1', { wait_ms: 30_000 })
    await world.clock.advance(10 * SECOND_MS)
    await world.request('r1')
    expect(await waiting).toMatchObject([{ asset_key: 'a' }])
  })

  test('[T12] and does not begin loses it to the next; the second worker to begin is told to stop', async () => {
    const { world, remote } = await openWorld()
    await world.define({ a: { queue: 'gpu' } })
    const run = await world.request('r1')
    const [first] = (await remote.ask('w1')) as [DispatchEnvelope]
    await world.clock.advance(MINUTE_MS - 1)
    expect(await remote.ask('w2')).toEqual([])
    const waiting = remote.ask('w2', { wait_ms: 10_000 })
    await world.clock.advance(1)
    const [second] = (await waiting) as [DispatchEnvelope]
    expect(second.attempt_id).toBe(first.attempt_id)
    expect((await remote.started(second, 'w2')).status).toBe(200)
    expect((await remote.started(second, 'w2')).status).toBe(200)
    expect(await remote.started(first, 'w1')).toMatchObject({
      status: 409,
      body: { code: 'already_started', should_cancel: true },
    })
    expect((await remote.heartbeat(first, 'w1')).body).toMatchObject({
      should_cancel: true,
      reason: 'another worker has this attempt',
    })
    expect((await remote.heartbeat(second, 'w2')).body).toEqual({ should_cancel: false })
    expect(world.attempts(run, 'a')).toMatchObject([{ attempt: 1, worker_id: 'w2', state: 'RUNNING' }])
    await world.clock.advance(MINUTE_MS)
    expect(await remote.ask('w3'), 'what was begun is not offered').toEqual([])
  })

  test('is missed by nobody but what waits for it', async () => {
    const { world, remote } = await openWorld({ capacity: 2 })
    const many = Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`gpu${i}`, { queue: 'gpu' }]))
    await world.define({ ...many, here: [] })
    const run = await world.request('r1')
    await world.clock.advance(SECOND_MS)
    expect(world.task(run, 'here')?.state).toBe('SUCCEEDED')
    expect(await remote.ask('w1', { capacity: 100 })).toHaveLength(20)
  })

  test('[D2] shares the slots of a pool with all who use it', async () => {
    const { world, remote } = await openWorld({ script: () => ({ ms: MINUTE_MS }) })
    await world.define({ a: { queue: 'gpu', pool: 'db', priority: 1 }, b: { pool: 'db' } }, { db: 1 })
    const run = await world.request('r1')
    await world.clock.advance(SECOND_MS)
    expect(world.states(run)).toEqual({ a: 'DISPATCHED', b: 'READY' })
    await remote.completed(await remote.take('w1'))
    await world.clock.advance(SECOND_MS)
    expect(world.states(run)).toEqual({ a: 'SUCCEEDED', b: 'RUNNING' })
  })

  test('may not call itself a local worker', async () => {
    const { world, remote } = await openWorld()
    await world.define({ a: { queue: 'gpu' } })
    await world.request('r1')
    const [work] = (await remote.ask('w1')) as [DispatchEnvelope]
    expect(await remote.started(work, 'local:instance-1')).toMatchObject({ status: 400, body: { field: 'worker_id' } })
  })

  test('[R1] that fails is retried like any other', async () => {
    const { world, remote } = await openWorld()
    await world.define({ a: { queue: 'gpu', retry: { max_attempts: 2, initial_ms: 1_000, jitter: false } } })
    const run = await world.request('r1')
    await remote.completed(await remote.take('w1'), failure())
    expect(await remote.ask('w1')).toEqual([])
    await world.clock.advance(SECOND_MS)
    const again = await remote.take('w1')
    expect(again.attempt).toBe(2)
    await remote.completed(again)
    expect(world.run(run)?.state).toBe('SUCCEEDED')
  })
})

describe('a result', () => {
  test('[F8][T7] said again is accepted again; another one, or one for what is over, is refused', async () => {
    const { world, remote } = await openWorld()
    await world.define({ a: { queue: 'gpu' }, b: { queue: 'gpu' } })
    const run = await world.request('r1')
    const work = await remote.take('w1')
    expect((await remote.completed(work)).status).toBe(200)
    expect(await remote.completed(work)).toEqual({ status: 200, body: { accepted: true } })
    expect(await remote.completed(work, { outcome: 'SUCCEEDED', materialization_id: 'other' })).toMatchObject({
      status: 409,
      body: { code: 'task_over', should_cancel: true },
    })
    expect((await remote.completed(work, { ...made(work), output: { rows: 3 } })).status).toBe(409)
    expect((await remote.completed(work, failure())).status).toBe(409)
    expect((await remote.started(work, 'w1')).status).toBe(409)
    expect(world.attempts(run, work.task_key)).toHaveLength(1)
  })

  test('may come from a worker that never said it began', async () => {
    const { world, remote } = await openWorld()
    await world.define({ a: { queue: 'gpu' } })
    const run = await world.request('r1')
    const [work] = (await remote.ask('w1')) as [DispatchEnvelope]
    expect((await remote.completed(work)).status).toBe(200)
    expect(world.run(run)?.state).toBe('SUCCEEDED')
    await world.clock.advance(5 * MINUTE_MS)
    expect(await remote.ask('w1')).toEqual([])
  })

  test('of a run that is history is compared with what history says', async () => {
    const noError = { error_category: null, error_message: null, error_detail: null }
    const nothingElse = { ...noError, code_version: null, output: null, metrics: null }
    const history = { ...nothingElse, outcome: 'SUCCEEDED' as const, materialization_id: 'm1' }
    const { world, remote } = await openWorld({
      options: { remote: { history: async () => history }, compaction: { limits: { max_age_ms: 1_000 } } },
    })
    await world.define({ a: { queue: 'gpu' } })
    const run = await world.request('r1')
    const work = await remote.take('w1')
    await remote.completed(work, { outcome: 'SUCCEEDED', materialization_id: 'm1' })
    await world.clock.advance(10 * MINUTE_MS)
    expect(world.run(run), 'the run is sealed').toBeUndefined()
    expect((await remote.completed(work, { outcome: 'SUCCEEDED', materialization_id: 'm1' })).status).toBe(200)
    expect(await remote.completed(work, { outcome: 'SUCCEEDED', materialization_id: 'm2' })).toMatchObject({
      status: 409,
      body: { code: 'sealed' },
    })
    expect((await remote.heartbeat(work)).body).toMatchObject({ should_cancel: true, reason: 'sealed' })
  })
})

describe('a worker that falls silent', () => {
  const define = { a: { queue: 'gpu' } } as const

  test('[T13][R4][W3] is given up after its timeout and a grace; that costs the task no attempt', async () => {
    const { world, remote } = await openWorld()
    await world.define(define)
    const run = await world.request('r1')
    await remote.take('w1')
    await world.clock.advance(90 * SECOND_MS - 1)
    expect(world.task(run, 'a')?.state).toBe('RUNNING')
    await world.clock.advance(5 * SECOND_MS)
    const error_message = expect.stringMatching(/^worker w1 sent no heartbeat for 9\d s$/)
    const lost = { outcome: 'FAILED', error_category: 'lost', worker_id: 'w1', error_message }
    expect(world.attempts(run, 'a')).toMatchObject([lost, { attempt: 2, state: 'DISPATCHED' }])
    await remote.completed(await remote.take('w2'))
    expect(world.run(run)?.state).toBe('SUCCEEDED')
    expect(await world.problems()).toEqual([])
  })

  test('[W4][I9] and wakes up changes nothing, and is told to stop', async () => {
    const { world, remote } = await openWorld()
    await world.define(define)
    const run = await world.request('r1')
    const frozen = await remote.take('w1')
    await world.clock.advance(2 * MINUTE_MS)
    const next = await remote.take('w2')
    const before = JSON.stringify([world.task(run, 'a'), world.attempts(run, 'a')])
    expect(await remote.heartbeat(frozen, 'w1')).toEqual({
      status: 200,
      body: { should_cancel: true, reason: 'stale_attempt' },
    })
    expect(await remote.started(frozen, 'w1')).toMatchObject({ status: 409, body: { should_cancel: true } })
    expect(await remote.completed(frozen)).toMatchObject({ status: 409, body: { code: 'stale_attempt', should_cancel: true } })
    expect(JSON.stringify([world.task(run, 'a'), world.attempts(run, 'a')])).toBe(before)
    expect((await remote.completed(next)).status).toBe(200)
    expect((await remote.heartbeat(frozen, 'w1')).body.should_cancel).toBe(true)
    expect(world.task(run, 'a')?.materialization_id).toBe(made(next).materialization_id)
  })

  test('[T12][W3] is not kept alive by another one that has the same work', async () => {
    const { world, remote } = await openWorld()
    await world.define(define)
    const run = await world.request('r1')
    const work = await remote.take('w1')
    for (let beat = 0; beat < 10; beat++) {
      await world.clock.advance(10 * SECOND_MS)
      await remote.heartbeat(work, 'w2')
    }
    expect(world.attempts(run, 'a')).toMatchObject([{ worker_id: 'w1', error_category: 'lost' }, { attempt: 2 }])
  })

  test('[W3] was not silent while it said so: a heartbeat costs no write, and a few of them one', async () => {
    const store = countingStore(memoryStore())
    const { world, remote } = await openWorld({ store, options: { publishDelayMs: 10 * HOUR_MS } })
    await world.define(define)
    const run = await world.request('r1')
    const work = await remote.take('w1')
    store.reset()
    const beats = 720
    for (let beat = 0; beat < beats; beat++) {
      await world.clock.advance(5 * SECOND_MS)
      expect((await remote.heartbeat(work, 'w1')).body.should_cancel).toBe(false)
    }
    expect(world.task(run, 'a')?.state).toBe('RUNNING')
    // One per third of the timeout, and one per alarm that was set again.
    const writes = store.requests.filter(({ method }) => method === 'create').length
    expect(writes).toBeLessThanOrEqual((HOUR_MS / MINUTE_MS) * 3 + HOUR_MS / (90 * SECOND_MS) + 1)
    expect(writes).toBeGreaterThan(HOUR_MS / MINUTE_MS)
  })

  test('[T13][W3] because the server was away is heard when it is back: what is on record counts, and everybody gets a full timeout', async () => {
    const { world, remote } = await openWorld()
    await world.define(define)
    const run = await world.request('r1')
    const work = await remote.take('w1')
    for (let beat = 0; beat < 6; beat++) {
      await world.clock.advance(10 * SECOND_MS)
      await remote.heartbeat(work, 'w1')
    }
    const heard = world.attempts(run, 'a')[0]?.last_heartbeat_at as number
    expect(world.clock.now() - heard).toBeLessThanOrEqual(20 * SECOND_MS)
    await world.crash()
    expect(world.attempts(run, 'a')[0]?.last_heartbeat_at, 'it survives the process').toBe(heard)
    await world.clock.advance(89 * SECOND_MS)
    expect(world.task(run, 'a')).toMatchObject({ state: 'RUNNING', attempt: 1 })
    expect((await remote.heartbeat(work, 'w1')).body).toEqual({ should_cancel: false })
    await world.clock.advance(80 * SECOND_MS)
    expect((await remote.completed(work)).status).toBe(200)
    expect(world.attempts(run, 'a')).toMatchObject([{ attempt: 1, outcome: 'SUCCEEDED', worker_id: 'w1' }])
  })

  test('[T13][W3] while the server was away for long gets its timeout once more, then is given up', async () => {
    const { world, remote } = await openWorld()
    await world.define(define)
    const run = await world.request('r1')
    await remote.take('w1')
    await world.crash(HOUR_MS)
    await world.clock.advance(89 * SECOND_MS)
    expect(world.task(run, 'a')).toMatchObject({ state: 'RUNNING', attempt: 1 })
    await world.clock.advance(10 * SECOND_MS)
    expect(world.task(run, 'a')).toMatchObject({ attempt: 2 })
  })
})

describe('a deadline', () => {
  const define = { a: { queue: 'gpu', timeout_sec: 100, retry: { max_attempts: 2, initial_ms: 0 } } } as const

  test('[T13] tells the worker to stop, waits a grace, and then fails the attempt, which is retried', async () => {
    const { world, remote } = await openWorld()
    await world.define(define)
    const run = await world.request('r1')
    const work = await remote.take('w1')
    for (let beat = 0; beat < 9; beat++) {
      await world.clock.advance(11 * SECOND_MS)
      expect((await remote.heartbeat(work, 'w1')).body.should_cancel).toBe(false)
    }
    await world.clock.advance(SECOND_MS)
    expect((await remote.heartbeat(work, 'w1')).body).toMatchObject({ reason: 'the attempt exceeded its timeout of 100 s' })
    await world.clock.advance(30 * SECOND_MS - 1)
    expect(world.task(run, 'a')).toMatchObject({ state: 'RUNNING', attempt: 1 })
    await world.clock.advance(2)
    expect(world.attempts(run, 'a')).toMatchObject([{ outcome: 'FAILED', error_category: 'timeout' }, { attempt: 2 }])
    expect((await remote.completed(work)).status).toBe(409)
    const second = await remote.take('w2')
    await world.clock.advance(80 * SECOND_MS)
    await remote.heartbeat(second, 'w2')
    await world.clock.advance(51 * SECOND_MS)
    expect(world.run(run)?.state, 'the second attempt has a deadline of its own').toBe('FAILED')
    expect(await world.problems()).toEqual([])
  })

  test('[T13] is not moved by a restart', async () => {
    const { world, remote } = await openWorld()
    await world.define(define)
    const run = await world.request('r1')
    const work = await remote.take('w1')
    await world.clock.advance(60 * SECOND_MS)
    await world.crash()
    await world.clock.advance(69 * SECOND_MS)
    expect(world.task(run, 'a')).toMatchObject({ state: 'RUNNING', attempt: 1 })
    await world.clock.advance(2 * SECOND_MS)
    expect((await remote.completed(work)).status).toBe(409)
    expect(world.attempts(run, 'a')).toMatchObject([{ error_category: 'timeout' }, { attempt: 2 }])
  })
})

test('[T13] a result that was made while the server was away is taken when it is back, though its time is over', async () => {
  const { world, remote } = await openWorld()
  await world.define({ a: { queue: 'gpu', timeout_sec: 100 } })
  const run = await world.request('r1')
  const work = await remote.take('w1')
  await world.crash(10 * MINUTE_MS)
  await world.clock.advance(29 * SECOND_MS)
  expect((await remote.completed(work)).status).toBe(200)
  expect(world.run(run)?.state).toBe('SUCCEEDED')
})

describe('a cancelled run', () => {
  test('[T13][C3] ends at once what no worker has, asks the others, and does not wait for those who do not listen', async () => {
    const { world, remote } = await openWorld()
    await world.define({
      good: { queue: 'gpu', priority: 3 },
      deaf: { queue: 'gpu', priority: 2 },
      lost: { queue: 'gpu', priority: 1 },
      free: { queue: 'gpu' },
    })
    const run = await world.request('r1')
    const [good, deaf] = [await remote.take('w1'), await remote.take('w2')]
    const [claimed] = (await remote.ask('w3')) as [DispatchEnvelope]
    await world.cancel(run)
    await world.clock.advance(1)
    expect(world.states(run)).toEqual({ good: 'RUNNING', deaf: 'RUNNING', lost: 'DISPATCHED', free: 'CANCELLED' })
    const stop = { should_cancel: true, reason: 'the run was cancelled' }
    expect((await remote.heartbeat(good, 'w1')).body).toEqual(stop)
    expect((await remote.completed(good, { outcome: 'CANCELLED' })).status).toBe(200)
    expect((await remote.started(claimed, 'w3')).body).toEqual(stop)
    await world.clock.advance(12 * SECOND_MS - 2)
    expect(world.task(run, 'deaf')?.state).toBe('RUNNING')
    await world.clock.advance(2)
    expect(world.run(run)?.state).toBe('CANCELLED')
    expect(await remote.completed(deaf)).toMatchObject({ status: 409, body: { should_cancel: true } })
    expect((await remote.heartbeat(claimed, 'w3')).body.should_cancel).toBe(true)
    expect(await world.problems()).toEqual([])
  })

  test('[C2] gives nothing to a worker that asks in the same moment, and ends at once', async () => {
    for (const delay of [0, 1, 2, 3]) {
      const { world, remote } = await openWorld()
      await world.define({ a: { queue: 'gpu' }, b: { queue: 'gpu' } })
      const run = await world.request('r1')
      const cancelled = world.cancel(run)
      for (let i = 0; i < delay; i++) await Promise.resolve()
      expect(await remote.ask('w1', { capacity: 5 })).toEqual([])
      await cancelled
      await world.clock.advance(1)
      expect(world.run(run)?.state).toBe('CANCELLED')
      expect(await world.problems()).toEqual([])
    }
  })

  test('[T13][C3] ends in time also when the server crashed meanwhile', async () => {
    const { world, remote } = await openWorld()
    await world.define({ a: { queue: 'gpu' }, b: { queue: 'gpu' } })
    const run = await world.request('r1')
    await remote.take('w1')
    await world.cancel(run)
    await world.crash()
    await world.clock.advance(12 * SECOND_MS)
    expect(world.run(run)?.state).toBe('CANCELLED')
  })
})

test('[D4] a crash between handing out and beginning: the work is offered again, and begun once', async () => {
  const { world, remote } = await openWorld()
  await world.define({ a: { queue: 'gpu' } })
  const run = await world.request('r1')
  const [first] = (await remote.ask('w1')) as [DispatchEnvelope]
  await world.crash()
  const [again] = (await remote.ask('w2')) as [DispatchEnvelope]
  expect(again.attempt_id).toBe(first.attempt_id)
  expect((await remote.started(first, 'w1')).status).toBe(200)
  expect((await remote.started(again, 'w2')).status).toBe(409)
  expect(world.attempts(run, 'a')).toMatchObject([{ worker_id: 'w1' }])
})
