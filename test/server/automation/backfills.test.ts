import { describe, expect, test } from 'vitest'
import type { DispatchEnvelope } from '../../../src/contract/dispatch.ts'
import { projectManifest } from '../../../src/contract/project-manifest.ts'
import { SECOND_MS } from '../../../src/lib/time.ts'
import { Led } from '../led.ts'
import { failure } from '../world.ts'

const daily = { type: 'daily', start: '2024-01-01', timezone: 'UTC' } as const
const monthly = { type: 'monthly', start: '2024-01-01', timezone: 'UTC' } as const
const asset = (asset_key: string, more: object = {}) => ({ asset_key, kind: 'asset' as const, ...more })
const project = {
  assets: [
    asset('days', { partitions: daily }),
    asset('clean', { partitions: daily, deps: [{ asset_key: 'days' }] }),
    asset('other', { partitions: daily }),
    asset('months', { partitions: monthly, deps: [{ asset_key: 'clean' }, { asset_key: 'other' }] }),
    asset('sized', { partitions: daily, policies: { backfill: { chunk: 4 } } }),
    asset('running', {
      partitions: daily,
      deps: [{ asset_key: 'running', mapping: { type: 'time_window', start_offset: -1, end_offset: -1 } }],
    }),
    asset('customers', { partitions: { type: 'dynamic', name: 'customers' } }),
    asset('whole'),
  ],
}

const taskOf = ({ asset_key, partition }: DispatchEnvelope): string => `${asset_key}[${partition?.key}]`

interface Opened {
  readonly led: Led
  readonly failing: Set<string>
  create(body: object): Promise<string>
  /** Until it has ended, or so many seconds have passed. */
  over(id: string, seconds?: number): Promise<void>
  shown(id: string): Promise<Readonly<Record<string, never>>>
}

async function open(ms = 10): Promise<Opened> {
  const failing = new Set<string>()
  const script = (envelope: DispatchEnvelope) =>
    failing.has(taskOf(envelope)) ? { ms, result: failure({ retryable: false }) } : { ms }
  const led = await Led.open(project, { automation: true }, script)
  led.server.orchestrator.projectKnown()
  const shown = async (id: string) => (await led.get(`/backfills/${id}`)).body.backfill
  return {
    led,
    failing,
    shown,
    async create(body) {
      const { status, body: made } = await led.post('/backfills', body)
      expect([status, made.message]).toEqual([202, 'backfill created'])
      return made.backfill_id
    },
    async over(id, seconds = 60) {
      for (let i = 0; i < seconds * 2; i++) {
        if (['SUCCEEDED', 'FAILED', 'CANCELLED'].includes((await shown(id)).state)) return
        await led.clock.advance(SECOND_MS / 2)
      }
    },
  }
}

const january = (days: number) => ({ type: 'range', start: '2024-01-01', end: `2024-01-${String(days).padStart(2, '0')}` })
const made = (led: Led): string[] => led.workers.started.map(taskOf)

describe('a backfill', () => {
  test('[A81][I14] makes each of its partitions once, chunk by chunk, so many runs at a time', async () => {
    const { led, create, over, shown } = await open()
    const id = await create({ select: ['days'], partitions: january(25), max_concurrent_runs: 1 })
    await over(id)
    expect(await shown(id)).toMatchObject({
      state: 'SUCCEEDED',
      total_chunks: 3,
      succeeded_chunks: 3,
      succeeded_partitions: 25,
    })
    expect(made(led)).toEqual(Array.from({ length: 25 }, (_, i) => `days[2024-01-${String(i + 1).padStart(2, '0')}]`))
    const { chunks } = (await led.get(`/backfills/${id}/chunks`)).body
    expect(chunks).toMatchObject([
      { chunk_index: 0, state: 'SUCCEEDED', first_key: '2024-01-01', last_key: '2024-01-10', total_partitions: 10 },
      { chunk_index: 1, state: 'SUCCEEDED', first_key: '2024-01-11', last_key: '2024-01-20' },
      { chunk_index: 2, state: 'SUCCEEDED', first_key: '2024-01-21', last_key: '2024-01-25', total_partitions: 5 },
    ])
    const { run } = (await led.get(`/runs/${chunks[0].run_id}`)).body
    expect(run).toMatchObject({ priority: -100, trigger_type: 'backfill', tasks_total: 10 })
  })

  test('has chunks of the size that is asked for, or else that its asset declares', async () => {
    const { led } = await open()
    const sizes = async (body: object) =>
      (await led.post('/backfills/preview', { partitions: january(20), ...body })).body.stages.map(
        ({ chunk_size, chunks }: { chunk_size: number; chunks: number }) => [chunk_size, chunks],
      )
    expect(await sizes({ select: ['sized'] })).toEqual([[4, 5]])
    expect(await sizes({ select: ['sized'], chunk_size: 7 })).toEqual([[7, 3]])
    expect(await sizes({ select: ['days'] })).toEqual([[10, 2]])
  })

  test('[A82] of several assets makes each after what it needs, and skips what needs something that failed', async () => {
    const { led, failing, create, over, shown } = await open()
    failing.add('days[2024-02-03]')
    const partitions = { type: 'range', start: '2024-01-01', end: '2024-03-31' }
    const id = await create({
      select: ['days', 'clean', 'other', 'months'],
      partitions,
      chunk_size: 30,
      max_concurrent_runs: 4,
    })
    await over(id)
    const { backfill, assets } = (await led.get(`/backfills/${id}`)).body
    expect(backfill).toMatchObject({ state: 'FAILED', failed_partitions: 1, skipped_partitions: 2 })
    expect(backfill.stages).toMatchObject([{ assets: ['days', 'clean', 'other'] }, { assets: ['months'] }])
    const order = made(led)
    expect(order.length).toBe(new Set(order).size)
    expect(order.filter((task) => task.startsWith('months')).sort()).toEqual(['months[2024-01]', 'months[2024-03]'])
    const lastOf = (start: string) => order.findLastIndex((task) => task.startsWith(start))
    expect(order.indexOf('months[2024-01]')).toBeGreaterThan(lastOf('clean[2024-01'))
    expect(order.indexOf('months[2024-03]')).toBeGreaterThan(lastOf('other[2024-03'))
    const skippedOf = (key: string) => assets.find((row: { asset_key: string }) => row.asset_key === key).skipped
    expect(skippedOf('clean')).toEqual({ positions: [], keys: ['2024-02-03'] })
    expect(skippedOf('months')).toEqual({ positions: [1, 1], keys: [] })

    failing.clear()
    const before = led.workers.started.length
    const retry = (body: object) => led.post(`/backfills/${id}/retry-failed`, body)
    const { body: child } = await retry({ request_id: 'r' })
    expect(child).toMatchObject({ created: true, total_partitions: 3, parent_backfill_id: id })
    expect((await retry({ request_id: 'r' })).body).toMatchObject({ created: false, backfill_id: child.backfill_id })
    expect((await retry({ request_id: 'r', priority: 1 })).body.code).toBe('idempotency_key_reused')
    await over(child.backfill_id)
    expect(await shown(child.backfill_id)).toMatchObject({ state: 'SUCCEEDED', succeeded_partitions: 3 })
    expect(made(led).slice(before)).toEqual(['days[2024-02-03]', 'clean[2024-02-03]', 'months[2024-02]'])
  })

  test('[A82] of an asset that is made from its own past makes one chunk after the other, and stops where one is missing', async () => {
    const { led, failing, create, over, shown } = await open()
    failing.add('running[2024-01-12]')
    const body = { select: ['running'], partitions: january(30), max_concurrent_runs: 3 }
    const id = await create(body)
    await over(id)
    expect(made(led)).toEqual(Array.from({ length: 12 }, (_, i) => `running[2024-01-${String(i + 1).padStart(2, '0')}]`))
    expect(await shown(id)).toMatchObject({ state: 'FAILED', failed_partitions: 1, skipped_partitions: 18, skipped_chunks: 1 })
    expect((await led.post('/backfills', { ...body, newest_first: true })).body.code).toBe('bad_order')
  })

  test('[A84] is of the keys that a dynamic set had: what is added or removed meanwhile changes nothing', async () => {
    const { led, create, over, shown } = await open(1_000)
    const change = (keys: object) => led.post('/partitions/sets/customers/keys', keys)
    await change({ add: ['anna', 'carl', 'dora'] })
    const id = await create({ select: ['customers'], partitions: { type: 'all' }, chunk_size: 1, max_concurrent_runs: 1 })
    await change({ add: ['bert'], remove: ['dora'] })
    await over(id)
    expect(await shown(id)).toMatchObject({ state: 'SUCCEEDED', succeeded_partitions: 3 })
    expect(made(led)).toEqual(['customers[anna]', 'customers[carl]', 'customers[dora]'])
  })

  test('[A80] that is paused plans no chunk, goes on when it is resumed, and is cancelled once no run is active', async () => {
    const { led, create, over, shown } = await open(5_000)
    const id = await create({ select: ['days'], partitions: january(30), chunk_size: 1, max_concurrent_runs: 2 })
    const tell = (what: string, body: object = {}, query = '') => led.post(`/backfills/${id}/${what}${query}`, body)
    await led.clock.advance(SECOND_MS)
    const { state_version } = await shown(id)
    const paused = await tell('pause', { request_id: 'p', reason: 'too hot' }, `?expected_state_version=${state_version}`)
    expect(paused).toMatchObject({ status: 202, body: { state: 'PAUSED', state_version: 3 } })
    expect((await tell('pause', {}, `?expected_state_version=${state_version}`)).body).toMatchObject({
      code: 'state_changed',
      expected: state_version,
      actual: 3,
    })
    await led.clock.advance(60 * SECOND_MS)
    expect(await shown(id)).toMatchObject({ state: 'PAUSED', state_reason: 'too hot', planned_chunks: 2, succeeded_chunks: 2 })
    expect((await tell('resume')).body).toMatchObject({ state: 'RUNNING', state_version: 4 })
    // The first pause, repeated, is not another.
    expect((await tell('pause', { request_id: 'p' })).body).toMatchObject({ state: 'RUNNING', state_version: 4 })
    await led.clock.advance(SECOND_MS)
    const cancelled = await tell('cancel', { reason: 'enough' })
    expect(cancelled).toMatchObject({ status: 202, body: { state: 'RUNNING' } })
    expect((await tell('resume')).body).toMatchObject({ code: 'backfill_over' })
    await over(id)
    expect(await shown(id)).toMatchObject({
      state: 'CANCELLED',
      planned_chunks: 4,
      succeeded_chunks: 4,
      cancel_reason: 'enough',
    })
    expect((await tell('cancel')).body).toMatchObject({ message: cancelled.body.message, state: 'CANCELLED' })
    expect((await tell('resume')).body).toMatchObject({ code: 'backfill_over', current: 'CANCELLED', requested: 'RUNNING' })
  })

  test('that is cancelled with its runs cancels those that have begun', async () => {
    const { led, create, over, shown } = await open(5_000)
    const id = await create({ select: ['days'], partitions: january(30), chunk_size: 3, max_concurrent_runs: 2 })
    await led.clock.advance(SECOND_MS)
    await led.post(`/backfills/${id}/cancel`, { cancel_runs: true })
    await over(id)
    expect(await shown(id)).toMatchObject({ state: 'CANCELLED', cancelled_chunks: 2, cancelled_partitions: 6 })
  })

  test('stops after so many failed chunks, and shows failures while it is paused', async () => {
    const { led, failing, create, over, shown } = await open(1_000)
    failing.add('days[2024-01-02]')
    const body = { select: ['days'], partitions: january(30), chunk_size: 1, max_concurrent_runs: 1 }
    const id = await create({ ...body, stop_after_failures: 1 })
    await over(id)
    expect(await shown(id)).toMatchObject({ state: 'FAILED', planned_chunks: 2, failed_chunks: 1 })
    const other = await create(body)
    await led.clock.advance(2_500)
    await led.post(`/backfills/${other}/pause`, {})
    await led.clock.advance(5_000)
    expect(await shown(other)).toMatchObject({ state: 'PAUSED_WITH_FAILURES', failed_chunks: 1 })
  })

  test('[A83] pauses and says why when the partitions of an asset are changed, and goes on when they are changed back', async () => {
    const { led, create, over, shown } = await open(1_000)
    const define = (start: string) => {
      const assets = project.assets.map((one) => (one.asset_key === 'days' ? { ...one, partitions: { ...daily, start } } : one))
      return led.server.define(projectManifest.parse({ project: 'led', assets }))
    }
    const id = await create({ select: ['days'], partitions: january(10), chunk_size: 2, max_concurrent_runs: 1 })
    await led.clock.advance(100)
    await define('2024-01-03')
    await led.clock.advance(10_000)
    expect(await shown(id)).toMatchObject({ state: 'PAUSED', planned_chunks: 1 })
    expect((await shown(id)).state_reason).toContain('the partitions of days were changed')
    await define('2024-01-01')
    await led.post(`/backfills/${id}/resume`, {})
    await over(id)
    expect(await shown(id)).toMatchObject({ state: 'SUCCEEDED', succeeded_partitions: 10 })
  })

  test('takes what is missing, failed or stale when it is created; with nothing to do, it is not created', async () => {
    const { led, failing, create, over } = await open()
    failing.add('days[2024-01-05]')
    await over(await create({ select: ['days'], partitions: january(6) }))
    const count = async (partitions: object, more: object = {}) =>
      (await led.post('/backfills/preview', { select: ['days'], partitions, ...more })).body.total_partitions
    const within = { start: '2024-01-01', end: '2024-01-10' }
    expect(await count({ type: 'missing', ...within })).toBe(5)
    expect(await count({ type: 'failed' })).toBe(1)
    expect(await count({ type: 'stale', ...within })).toBe(5)
    expect(await count(january(10), { skip_existing: true })).toBe(5)
    const answer = await led.post('/backfills', {
      select: ['days'],
      partitions: { type: 'missing', start: '2024-01-01', end: '2024-01-04' },
    })
    expect(answer).toMatchObject({ status: 202, body: { backfill_id: null, created: false, accepted_event_id: null } })
    expect(answer.body.message).toBe('nothing to do: nothing is missing in days')
  })
})

describe('a request for a backfill', () => {
  test('[A85] that is repeated gets its first answer; another under the same id is refused', async () => {
    const { led } = await open()
    const ask = (days: number) =>
      led.post('/backfills', { select: ['days'], partitions: january(days), client_request_id: 'once' })
    const first = await ask(3)
    expect(first.body).toMatchObject({ created: true, total_partitions: 3 })
    expect((await ask(3)).body).toMatchObject({ ...first.body, created: false })
    expect(await ask(4)).toMatchObject({ status: 422, body: { code: 'idempotency_key_reused' } })
    expect((await led.get('/backfills')).body.backfills).toHaveLength(1)
  })

  const range = (start: string, end: string) => ({ type: 'range', start, end })
  const minutes = asset('minutes', {
    partitions: {
      type: 'multi',
      dimensions: {
        minute: { type: 'minutely', start: '2020-01-01T00:00', timezone: 'UTC' },
        region: { type: 'keys', keys: Array.from({ length: 600 }, (_, i) => `r${i}`) },
      },
    },
  })
  test.each([
    ['no assets', { select: [] }, 'select'],
    ['no partition', { partitions: { type: 'explicit', partition_keys: [] } }, 'partitions'],
    ['a reversed range', { partitions: range('2024-01-05', '2024-01-01') }, '2024-01-05 comes after 2024-01-01'],
    ['an unknown asset', { select: ['dayz'] }, 'Did you mean days?'],
    ['a key that is no day', { partitions: range('2024-01-01', 'tomorrow') }, 'tomorrow'],
    ['a key before the first', { partitions: range('2023-01-01', '2024-01-01') }, '2023-01-01'],
    ['a day that is not over', { partitions: range('2024-01-01', '2099-01-01') }, '2099-01-01'],
    ['chunks of nothing', { chunk_size: 0 }, 'chunk_size'],
    ['chunks of too much', { chunk_size: 10_001 }, 'chunk_size'],
    ['no run at a time', { max_concurrent_runs: 0 }, 'max_concurrent_runs'],
    ['an unknown dimension', { partitions: { type: 'filter', filters: { region: 'eu' } } }, 'unknown dimension `region`'],
    ['an asset without partitions', { select: ['whole'] }, 'whole has no partitions'],
    ['a retry', { partitions: { type: 'retry_failed' } }, 'partitions'],
    ['something that there is not', { chunks: 3 }, 'chunks'],
    ['a billion partitions', { select: ['minutes'], partitions: { type: 'all' } }, 'the limit is 10000000'],
  ])('for %s is refused, and nothing is recorded', async (_, body, expected) => {
    const led = await Led.open({ assets: [...project.assets, minutes] }, { automation: true })
    led.server.orchestrator.projectKnown()
    const { status, body: problem } = await led.post('/backfills', { select: ['days'], partitions: january(3), ...body })
    expect(status).toBeGreaterThanOrEqual(400)
    expect(status).toBeLessThan(500)
    expect(JSON.stringify(problem)).toContain(expected)
    expect((await led.get('/backfills')).body.backfills).toEqual([])
  })

  test('about a backfill that there is not answers 404', async () => {
    const { led } = await open()
    expect(await led.get('/backfills/bf_x')).toMatchObject({ status: 404, body: { code: 'no_such_backfill' } })
    for (const what of ['pause', 'resume', 'cancel', 'retry-failed'])
      expect((await led.post(`/backfills/bf_x/${what}`, {})).status).toBe(404)
  })
})
