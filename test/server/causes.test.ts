import { describe, expect, test } from 'vitest'
import { Paths } from '../../src/engine/paths.ts'
import { MINUTE_MS, SECOND_MS } from '../../src/lib/time.ts'
import type { Envelope } from '../../src/model/envelope.ts'
import { Remote } from './remote.ts'
import { failure, scope, World } from './world.ts'

const TRACE = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
const OTHER = '00-11111111111111111111111111111111-2222222222222222-01'

/** Everything in the ledger, in the order in which it was written. */
async function written({ store }: World): Promise<Envelope[]> {
  const events: Envelope[] = []
  for await (const { path } of store.list(new Paths(scope).ledger)) {
    events.push(...(JSON.parse(Buffer.from((await store.get(path)) as Uint8Array).toString()) as { events: Envelope[] }).events)
  }
  return events
}

/** A run in which every controller has something to decide: plans, dispatches, retries, alarms, silence, a deadline, a restart. */
async function eventful(traceparent?: string): Promise<{ world: World; run: string; events: Envelope[] }> {
  const script = ({ asset_key, attempt }: { asset_key: string; attempt: number }) =>
    asset_key === 'flaky' && attempt === 1 ? { result: failure() } : { ms: asset_key === 'slow' ? MINUTE_MS : 1 }
  const world = await World.open({ script, options: { remote: { post: async () => undefined } } })
  const remote = new Remote(world)
  remote.pushTo({ told: { push: 'https://queue.example' } })
  await world.define({
    flaky: { retry: { max_attempts: 2, initial_ms: 100 } },
    below: ['flaky'],
    slow: {},
    silent: { queue: 'gpu', timeout_sec: 600 },
    told: { queue: 'told' },
  })
  const run = await world.request('r1', '*', { ...(traceparent && { traceparent }) })
  const work = await remote.take('w1', { queues: ['gpu'] })
  // The trace of the request, and the span of the attempt.
  expect(work.traceparent).toMatch(new RegExp(`^00-${traceparent?.slice(3, 35) ?? '[0-9a-f]{32}'}-[0-9a-f]{16}-01$`))
  expect(work.traceparent).not.toBe(traceparent)
  expect(world.run(run)?.traceparent).toBe(traceparent ?? null)
  await world.clock.advance(30 * SECOND_MS)
  await remote.heartbeat(work)
  await world.clock.advance(5 * SECOND_MS)
  await world.crash(SECOND_MS)
  await world.clock.advance(20 * MINUTE_MS)
  await world.cancel(run)
  await world.clock.advance(MINUTE_MS)
  return { world, run, events: await written(world) }
}

const decided = ['PlanCreated', 'DispatchRequested', 'DispatchRepeated', 'TimerRequested', 'TimerFired']

describe('where an event comes from', () => {
  test('[O8] is told by what controllers decide: the event that made the row so on which they decided', async () => {
    const { run, events } = await eventful()
    const types = new Set(events.map(({ event_type }) => event_type))
    for (const type of decided) expect(types).toContain(type)
    const before = new Map<string, Envelope>()
    for (const event of events) {
      if (decided.includes(event.event_type)) {
        expect(event.correlation_id).toBe(run)
        const cause = before.get(event.causation_id ?? '')
        expect(cause?.payload['run_id'], `${event.event_type} has no cause before it`).toBe(run)
      }
      before.set(event.event_id, event)
    }
    const causeOf = (event: Envelope | undefined): string | undefined => before.get(event?.causation_id ?? '')?.event_type
    const first = (type: string, key: string) =>
      events.find(({ event_type, payload }) => event_type === type && payload['task_key'] === key)
    expect(causeOf(events.find(({ event_type }) => event_type === 'PlanCreated'))).toBe('RunRequested')
    expect(causeOf(first('DispatchRequested', 'flaky'))).toBe('PlanCreated')
    expect(causeOf(first('DispatchRequested', 'below'))).toBe('TaskFinished')
    expect(causeOf(first('TimerRequested', 'flaky'))).toBe('TaskFinished')
    expect(causeOf(first('TimerFired', 'flaky'))).toBe('TimerRequested')
    expect(causeOf(first('TimerRequested', 'silent'))).toBe('TaskStarted')
    expect(causeOf(first('DispatchRepeated', 'told'))).toBe('DispatchEnqueued')
    const lost = events.find(({ payload }) => payload['task_key'] === 'slow' && payload['error_category'] === 'lost')
    expect(causeOf(lost), 'given up, because its process is gone').toBe('TaskStarted')
  })

  test('[O8] has the trace of the request for the run, in every event of it', async () => {
    const { run, events, world } = await eventful(TRACE)
    const own = events.filter(({ payload, event_type }) => payload['run_id'] === run && event_type !== 'RunCancelRequested')
    expect(new Set(own.map(({ event_type }) => event_type))).toContain('TaskHeartbeat')
    expect(own.length).toBeGreaterThan(20)
    for (const { event_type, traceparent } of own) expect([event_type, traceparent]).toEqual([event_type, TRACE])
    expect(await world.problems()).toEqual([])
  })

  test('has no trace when nobody named one', async () => {
    const { events } = await eventful()
    for (const event of events) expect(event).not.toHaveProperty('traceparent')
  })

  test('[O8] has the trace of the worker that reports it, if that is in one of its own; what is no trace is passed over', async () => {
    const world = await World.open()
    const remote = new Remote(world)
    await world.define({ a: { queue: 'gpu' }, b: { queue: 'gpu' } })
    await world.request('r1', '*', { traceparent: TRACE })
    const works = await remote.ask('w1', { capacity: 2 })
    for (const [i, { task_id, task_token }] of works.entries()) {
      const headers = { traceparent: i === 0 ? OTHER : 'not a trace' }
      await remote.post(`/tasks/${task_id}/started`, task_token ?? '', { worker_id: 'w1' }, headers)
      await remote.post(`/tasks/${task_id}/completed`, task_token ?? '', { outcome: 'SUCCEEDED' }, headers)
    }
    const reported = (await written(world)).filter(({ event_type }) => event_type.startsWith('Task'))
    expect(reported.map(({ event_type, traceparent }) => [event_type, traceparent])).toEqual([
      ['TaskStarted', OTHER],
      ['TaskFinished', OTHER],
      ['TaskStarted', TRACE],
      ['TaskFinished', TRACE],
    ])
  })
})
