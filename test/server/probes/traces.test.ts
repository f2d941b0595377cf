import { describe, expect, test } from 'vitest'
import { orchestration } from '../../../src/domain/index.ts'
import { traceOfRun } from '../../../src/domain/runs/run-trace.ts'
import type { TraceSpan } from '../../../src/lib/otlp/span.ts'
import { MINUTE_MS, SECOND_MS } from '../../../src/lib/time.ts'
import { parseTraceparent } from '../../../src/lib/traceparent.ts'
import { RecordedSpans } from '../../../src/server/traces/recorded-spans.ts'
import { Remote } from '../remote.ts'
import { World } from '../world.ts'

/** An orchestrator whose spans are caught; each process has its own, as it would begin. */
async function traced(isSampled = true) {
  const spans: TraceSpan[] = []
  let recorded: RecordedSpans
  const next = (): void => {
    recorded = new RecordedSpans({
      rows: () => world.orchestrator.loop.compactor.state,
      now: () => world.clock.now(),
      isSampled: () => isSampled,
      add: (span) => spans.push(span),
    })
  }
  next()
  const world: World = await World.open({
    options: {
      measure: { onRecorded: (...told) => recorded.recorded(...told) },
      onOpened: ({ state }) => {
        next()
        recorded.opened(state)
      },
      reactors: orchestration.tables
        .filter(({ name }) => ['runs', 'tasks', 'task_attempts'].includes(name))
        .map((watches) => ({
          watches,
          react: (row) => recorded.reactors.find((each) => each.watches === watches)?.react(row),
        })),
    },
  })
  return { world, spans, remote: new Remote(world) }
}

describe('the spans of a run', () => {
  test('[H8] are the same whichever process sees the end: an attempt that ends after a restart has the span that its worker was told', async () => {
    const { world, spans, remote } = await traced()
    await world.define({ a: { queue: 'gpu' }, b: ['a'] })
    const run = await world.request('r1')
    const work = await remote.take('w1', { queues: ['gpu'] })
    await remote.post(`/tasks/${work.task_id}/started`, work.task_token ?? '', { worker_id: 'w1' })
    expect(
      spans.map(({ name }) => name),
      'nothing has ended',
    ).toEqual(['run request', 'fold', 'append'])
    await world.crash(SECOND_MS)
    const later = new Remote(world)
    await later.post(`/tasks/${work.task_id}/completed`, work.task_token ?? '', { outcome: 'SUCCEEDED' })
    await world.clock.advance(MINUTE_MS)
    const told = parseTraceparent(work.traceparent ?? '')
    const attempt = spans.find(({ name }) => name === 'attempt a')
    expect(attempt).toMatchObject({ traceId: told?.traceId, spanId: told?.spanId })
    const row = world.run(run)
    const trace = row && traceOfRun(row)
    expect(new Set(spans.map(({ traceId }) => traceId))).toEqual(new Set([trace?.traceId]))
    const parents = new Map(spans.map(({ spanId, parentSpanId }) => [spanId, parentSpanId]))
    const chain: (string | undefined)[] = []
    for (let at: string | undefined = attempt?.spanId; at !== undefined; at = parents.get(at)) chain.push(at)
    expect(chain).toHaveLength(4)
    expect(chain.at(-1)).toBe(trace?.triggerSpan)
    expect(new Set(spans.map(({ spanId }) => spanId)).size, 'each is sent once').toBe(spans.length)
    const before = spans.length
    await world.crash(SECOND_MS)
    await world.clock.advance(10 * MINUTE_MS)
    expect(spans.length, 'a start repeats none').toBe(before)
  })

  test('[H8] are not made for a trace that is not sampled', async () => {
    const { world, spans } = await traced(false)
    await world.define({ a: [] })
    await world.request('r1')
    await world.clock.advance(MINUTE_MS)
    expect(spans).toEqual([])
  })
})
