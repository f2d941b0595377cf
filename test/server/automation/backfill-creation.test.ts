import { describe, expect, test } from 'vitest'
import type { DispatchEnvelope } from '../../../src/contract/dispatch.ts'
import type { WhyAnswer } from '../../../src/domain/why/reasons.ts'
import { whyInWords } from '../../../src/domain/why/words.ts'
import { openSegment } from '../../../src/engine/ledger/segment.ts'
import { SECOND_MS } from '../../../src/lib/time.ts'
import { Led } from '../led.ts'
import { failure } from '../world.ts'

const daily = { type: 'daily', start: '2010-01-01', timezone: 'UTC' } as const
const monthly = { type: 'monthly', start: '2010-01-01', timezone: 'UTC' } as const
const asset = (asset_key: string, more: object = {}) => ({ asset_key, kind: 'asset' as const, ...more })
const project = {
  assets: [
    asset('days', { partitions: daily }),
    asset('months', { partitions: monthly, deps: [{ asset_key: 'days' }], inputs: { days: { asset_key: 'days' } } }),
    asset('whole'),
    asset('minutes', { partitions: { type: 'minutely', start: '2023-01-01T00:00', timezone: 'UTC' } }),
  ],
}
const taskOf = ({ asset_key, partition }: DispatchEnvelope): string => `${asset_key}[${partition?.key}]`

async function open(failing: (task: string) => boolean = () => false) {
  const script = (envelope: DispatchEnvelope) =>
    failing(taskOf(envelope)) ? { ms: 10, result: failure({ retryable: false }) } : { ms: 10 }
  const led = await Led.open(project, { automation: true }, script)
  led.server.orchestrator.projectKnown()
  const over = async (id: string, seconds = 600) => {
    for (let i = 0; i < seconds; i++) {
      const { backfill } = (await led.get(`/backfills/${id}`)).body
      if (['SUCCEEDED', 'FAILED', 'CANCELLED'].includes(backfill.state)) return backfill
      await led.clock.advance(SECOND_MS)
    }
    throw new Error(`${id} did not come to its end`)
  }
  return { led, over }
}

const inWords = (answer: WhyAnswer): string[] => whyInWords(answer, 'UTC').map(({ text }) => text)
const range = (start: string, end: string) => ({ type: 'range', start, end })

describe('a backfill that is created', () => {
  test('[A86] is answered when it is durable, before any of its chunks is planned; a million partitions are an event below 1 KB', async () => {
    const { led } = await open()
    const body = { select: ['minutes'], partitions: range('2023-01-01T00:00', '2024-11-25T10:39'), chunk_size: 1_000 }
    const written: string[] = []
    led.before = ({ method, path }) => {
      if (method === 'create' && path.startsWith(led.paths.ledger)) written.push(path)
    }
    const answer = await led.post('/backfills', body)
    expect(answer.body).toMatchObject({ created: true, total_partitions: 1_000_000, total_chunks: 1_000 })
    const eventsIn = async (path = '') => {
      const bytes = (await led.memory.store.get(path)) ?? new Uint8Array()
      return openSegment(bytes, path, led.memory.scope).events
    }
    expect(written).toHaveLength(1)
    const first = await eventsIn(written[0])
    expect(first.map(({ event_type }) => event_type)).toEqual(['BackfillCreated'])
    expect(Buffer.byteLength(JSON.stringify(first[0]))).toBeLessThan(1_024)
    await led.clock.advance(10)
    expect((await eventsIn(written[1])).map(({ event_type }) => event_type)).toContain('BackfillChunkPlanned')
    expect((await led.get(`/backfills/${answer.body.backfill_id}`)).body.backfill).toMatchObject({ planned_chunks: 2 })
  })

  test('[A87] is refused if it reads what was never materialized; its preview says what that is', async () => {
    const { led, over } = await open()
    const body = { select: ['months'], partitions: range('2010-01', '2010-03') }
    const { body: preview } = await led.post('/backfills/preview', body)
    expect(preview.missing_inputs).toEqual([
      { asset_key: 'months', upstream: 'days', partitions: 90, first: ['2010-01-01', '2010-01-02', '2010-01-03'] },
    ])
    const refused = await led.post('/backfills', body)
    expect(refused).toMatchObject({ status: 400, body: { code: 'inputs_missing' } })
    expect(refused.body.detail).toContain('months needs days[2010-01-01], days[2010-01-02], days[2010-01-03] and 87 more')
    expect(refused.body.hint).toContain('servo backfills create days --only missing')
    expect((await led.get('/backfills')).body.backfills).toEqual([])
    const both = await led.post('/backfills', { ...body, select: ['days', 'months'] })
    await over(both.body.backfill_id)
    expect((await led.post('/backfills/preview', body)).body.missing_inputs).toEqual([])
    expect((await led.post('/backfills', body)).body).toMatchObject({ created: true, total_partitions: 3 })
  })

  test('can be changed while it goes on: more runs at a time, and how many may fail; conflicts and repetitions change nothing', async () => {
    const { led } = await open()
    const { body } = await led.post('/backfills', {
      select: ['days'],
      partitions: range('2010-01-01', '2010-03-31'),
      chunk_size: 1,
      max_concurrent_runs: 1,
    })
    const shown = async () => (await led.get(`/backfills/${body.backfill_id}`)).body.backfill
    const change = (changes: object, query = '') => led.ask('PATCH', `/backfills/${body.backfill_id}${query}`, changes)
    await led.clock.advance(5)
    expect((await shown()).active_chunks).toHaveLength(1)
    const why = async () => inWords((await led.get(`/why/backfill/${body.backfill_id}`)).body)[0]
    expect(await why()).toMatch(/is running: 1 of at most 1 runs is under way: run_/)
    expect(await change({ max_concurrent_runs: 4, request_id: 'c' })).toMatchObject({
      status: 202,
      body: { message: 'backfill changed', state: 'RUNNING', state_version: 2 },
    })
    expect(await shown()).toMatchObject({ max_concurrent_runs: 4, settings_version: 2 })
    expect((await shown()).active_chunks).toHaveLength(4)
    await change({ max_concurrent_runs: 4, request_id: 'c' })
    expect(await shown()).toMatchObject({ settings_version: 2 })
    expect((await change({ stop_after_failures: 3, priority: 7 })).status).toBe(202)
    expect(await shown()).toMatchObject({ max_concurrent_runs: 4, stop_after_failures: 3, priority: 7 })
    expect((await change({ stop_after_failures: null })).status).toBe(202)
    expect(await shown()).toMatchObject({ stop_after_failures: null, settings_version: 4 })
    expect((await change({ priority: 1 }, '?expected_state_version=9')).body).toMatchObject({ code: 'state_changed' })
    for (const bad of [{}, { request_id: 'r' }, { max_concurrent_runs: 0 }, { chunk_size: 3 }])
      expect((await change(bad)).status).toBe(400)
    expect(await shown()).toMatchObject({ priority: 7, settings_version: 4 })
    await led.post(`/backfills/${body.backfill_id}/pause`, { reason: 'too hot' })
    expect(await why()).toMatch(/waits: paused by \w+ at .*: too hot$/)
    await led.post(`/backfills/${body.backfill_id}/cancel`, {})
    expect(await why()).toMatch(/waits: .*cancel/)
  })

  test('of which 3 of 3,000 partitions failed is retried with exactly those 3; the same request is the same child', async () => {
    let isRepaired = false
    const bad = ['days[2011-02-03]', 'days[2014-05-06]', 'days[2018-01-02]']
    const { led, over } = await open((task) => !isRepaired && bad.includes(task))
    const { body } = await led.post('/backfills', {
      select: ['days'],
      partitions: range('2010-01-01', '2018-03-19'),
      chunk_size: 500,
    })
    expect(body).toMatchObject({ total_partitions: 3_000, total_chunks: 6 })
    expect(await over(body.backfill_id)).toMatchObject({ state: 'FAILED', succeeded_partitions: 2_997, failed_partitions: 3 })
    expect(inWords((await led.get(`/why/backfill/${body.backfill_id}`)).body)).toEqual([
      expect.stringMatching(/^bf_\w+ failed at 20.*: days\[2011-02-03\] and 2 more failed$/),
      expect.stringMatching(/^days\[2011-02-03\] failed in run_\w+: it broke$/),
      '2,997 of 3,000 partitions succeeded, 3 failed; 6 of 6 chunks are planned',
      expect.stringMatching(/^read the log: servo runs logs run_\w+ --task 'days\[2011-02-03\]'$/),
      `retry what failed: servo backfills retry-failed ${body.backfill_id}`,
      expect.stringMatching(/^because \w+ requested it at /),
    ])
    isRepaired = true
    const before = led.workers.started.length
    const retry = () => led.post(`/backfills/${body.backfill_id}/retry-failed`, { request_id: 'again' })
    const { body: child } = await retry()
    expect(child).toMatchObject({ created: true, total_partitions: 3, parent_backfill_id: body.backfill_id })
    expect((await retry()).body).toMatchObject({ created: false, backfill_id: child.backfill_id })
    expect(await over(child.backfill_id)).toMatchObject({ state: 'SUCCEEDED', succeeded_partitions: 3 })
    expect(led.workers.started.slice(before).map(taskOf)).toEqual(bad)
    const why = inWords((await led.get(`/why/backfill/${child.backfill_id}`)).body)
    expect(why.at(-1)).toContain(`retried what failed in ${body.backfill_id}`)
  })
})
