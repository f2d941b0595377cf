import fs from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { ServoError } from '../../../src/lib/error.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../../src/lib/time.ts'
import { measureProcess } from '../../../src/server/machine/process-metrics.ts'
import { ServerMetrics } from '../../../src/server/metrics/server-metrics.ts'
import { Led } from '../led.ts'

const assets = ['orders', 'sales'].map((asset_key) => ({ asset_key, kind: 'asset' as const }))
const hourly = { name: 'hourly', cron_expressions: ['0 * * * *'], asset_selection: ['orders'] }

/** The samples of `/metrics` by their names with labels. */
async function scraped(led: Led): Promise<Record<string, number>> {
  const text = await led.metrics()
  const samples = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return Object.fromEntries(
    samples.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ')))]),
  )
}

test('[H2] a tick, its run and its attempt are counted once each, a request that is repeated once, a conflict as one', async () => {
  const led = await Led.open({ assets, schedules: [hourly] }, { automation: true })
  expect(await scraped(led)).toMatchObject({ 'schedule_ticks_total{status="triggered"}': 0, run_key_conflicts_total: 0 })
  await led.clock.advance(HOUR_MS)
  for (const _ of [1, 2]) await led.request('mine', 'orders')
  const other = await led.post('/runs', { select: ['sales'], key: 'mine' })
  expect(other.status).toBe(409)
  await led.clock.advance(MINUTE_MS)
  expect(await scraped(led)).toMatchObject({
    'schedule_ticks_total{status="triggered"}': 1,
    'schedule_ticks_total{status="skipped"}': 0,
    schedule_tick_delay_seconds_count: 1,
    'run_requests_total{source="schedule"}': 1,
    'run_requests_total{source="manual"}': 1,
    run_key_conflicts_total: 1,
    'servo_runs_total{status="succeeded"}': 2,
    'servo_attempts_total{outcome="succeeded"}': 2,
    'servo_runs{state="running"}': 0,
    'servo_tasks{state="ready"}': 0,
    servo_local_attempts: 0,
    servo_leading: 1,
    servo_lease_number: 1,
    'servo_http_requests_total{method="POST",route="/api/v1/orchestration/runs",status="409"}': 1,
  })
})

test('[H2] ticks that were skipped together count as many as they are, and caught-up ones are no delay', async () => {
  const led = await Led.open({ assets, schedules: [hourly] }, { automation: true })
  await led.post('/schedules/hourly/pause', {})
  led.clock.jump(2 * DAY_MS)
  await led.clock.advance(MINUTE_MS)
  const counted = await scraped(led)
  expect(counted['schedule_ticks_total{status="skipped"}']).toBeGreaterThanOrEqual(47)
  expect(counted['schedule_ticks_total{status="triggered"}']).toBe(0)
})

test('[H2] what could not be written is not counted, and what is written again after an outage is counted once', async () => {
  const led = await Led.open({ assets })
  await led.request('before', 'orders')
  await led.clock.advance(SECOND_MS)
  const isSegment = ({ path, method }: { path: string; method: string }) => method === 'create' && path.includes('/ledger/')
  let isAway = true
  led.before = (request) => {
    if (isAway && isSegment(request)) throw new ServoError('unavailable', 'away', 'the store is away')
  }
  const asked = led.request('meanwhile', 'orders')
  await led.clock.advance(SECOND_MS)
  expect(await scraped(led)).toMatchObject({
    'run_requests_total{source="manual"}': 1,
    'servo_runs_total{status="succeeded"}': 1,
  })
  isAway = false
  for (let waited = 0; waited < MINUTE_MS; waited += SECOND_MS) await led.clock.advance(SECOND_MS)
  await asked
  await led.clock.advance(MINUTE_MS)
  const after = await scraped(led)
  expect(after).toMatchObject({
    'run_requests_total{source="manual"}': 2,
    'servo_runs_total{status="succeeded"}': 2,
    'servo_attempts_total{outcome="succeeded"}': 2,
    servo_leading: 1,
  })
  expect(after['servo_store_errors_total{kind="create"}']).toBeGreaterThan(0)
})

test('[H2] chunks of a backfill are counted in each status that they reach', async () => {
  const days = { type: 'keys' as const, keys: ['a', 'b', 'c', 'd'] }
  const led = await Led.open({ assets: [{ asset_key: 'sales', kind: 'asset', partitions: days }] }, { automation: true })
  const { status } = await led.post('/backfills', {
    select: ['sales'],
    partitions: { type: 'explicit', partition_keys: days.keys },
    chunk_size: 2,
  })
  expect(status).toBe(202)
  await led.clock.advance(MINUTE_MS)
  expect(await scraped(led)).toMatchObject({
    'backfill_chunks_total{status="planned"}': 2,
    'backfill_chunks_total{status="running"}': 2,
    'backfill_chunks_total{status="succeeded"}': 2,
    'backfill_chunks_total{status="failed"}': 0,
    'run_requests_total{source="backfill"}': 2,
  })
})

test('[H3] a request adds no series by what it asks for: ids, unknown paths and unknown methods are one each', async () => {
  const led = await Led.open({ assets })
  const routes = async () => Object.keys(await scraped(led)).filter((name) => name.startsWith('servo_http_requests_total'))
  const ask = async (id: number): Promise<void> => {
    await led.get(`/runs/run_${id}`)
    await led.get(`/nothing/${id}`)
    await led.ask(`BREW${id}`, `/pots/${id}`)
  }
  await scraped(led)
  await ask(1)
  const before = await routes()
  for (let id = 2; id < 20; id++) await ask(id)
  expect(await routes()).toEqual(before)
  expect(before).toContain('servo_http_requests_total{method="GET",route="/api/v1/orchestration/runs/:run_id",status="404"}')
  expect(before).toContain('servo_http_requests_total{method="other",route="none",status="404"}')
})

test('docs/api.md has every metric of a server, and no other', async () => {
  const metrics = new ServerMetrics()
  measureProcess(metrics.registry)()
  const led = await Led.open({ assets }, { metrics })
  const names = [...(await led.metrics()).matchAll(/^# TYPE (\S+) /gm)].map(([, name]) => name)
  const page = fs.readFileSync(path.resolve(import.meta.dirname, '../../../docs/api.md'), 'utf8')
  const [, table = ''] = /^### Metrics$([\s\S]*?)^## /m.exec(page) ?? []
  const rows = [...table.matchAll(/^\| (`[^|]+`) \|/gm)].flatMap(([, cell = '']) => [...cell.matchAll(/`(\w+)`/g)])
  expect(rows.map(([, name]) => name).toSorted()).toEqual(names.toSorted())
})
