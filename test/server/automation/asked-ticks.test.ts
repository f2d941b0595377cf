import { expect, test } from 'vitest'
import { whyInWords } from '../../../src/domain/why/words.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS, toIso } from '../../../src/lib/time.ts'
import { Led } from '../led.ts'

const daily = { type: 'daily', start: '2024-01-01', timezone: 'UTC' } as const
const project = {
  assets: [
    { asset_key: 'orders', kind: 'asset' as const },
    { asset_key: 'sales', kind: 'asset' as const, partitions: daily },
  ],
  schedules: [
    { name: 'nightly', cron_expressions: ['0 5 * * *'], asset_selection: ['sales'] },
    { name: 'hourly', cron_expressions: ['0 * * * *'], asset_selection: ['orders'], overlap: 'skip' as const },
  ],
}
const open = () => Led.open(project, { automation: true })
/** The same, after the schedules have been there for some days, paused. */
async function openLongAgo(days: number) {
  const led = await open()
  await led.post('/automation/pause', {})
  led.clock.jump(days * DAY_MS)
  return led
}
const fiveOf = (led: Led, daysAgo: number): number =>
  Math.floor(led.clock.now() / DAY_MS) * DAY_MS + 5 * HOUR_MS - daysAgo * DAY_MS
const dayOf = (ms: number): string => toIso(ms).slice(0, 10)

test('[A11] a trigger runs the partitions that it names, or the window that had closed at a moment, and leaves the cadence alone', async () => {
  const led = await open()
  const next = async () => (await led.get('/schedules/nightly')).body.next_ticks
  const [before, state] = [await next(), (await led.get('/schedules/nightly')).body.state]
  const trigger = async (body: object) => (await led.post('/schedules/nightly/trigger', body)).body
  const named = await trigger({ partitions: ['2024-02-01..2024-02-03'], request_id: 'r' })
  expect(named).toMatchObject({ created: true, partitions: ['2024-02-01..2024-02-03'] })
  await led.clock.advance(1)
  expect((await led.get(`/runs/${named.run_id}`)).body.run).toMatchObject({ tasks_total: 3 })
  const moment = fiveOf(led, 40)
  const past = await trigger({ scheduled_for: toIso(moment), request_id: 'p' })
  expect(past).toMatchObject({ scheduled_for: toIso(moment), partitions: [dayOf(moment - DAY_MS)] })
  const { ticks } = (await led.get('/schedules/nightly/ticks')).body
  expect(ticks).toMatchObject([
    { cause: 'manual', requested_by: 'local', partition_selection: named.partitions },
    { cause: 'manual', requested_by: 'local', scheduled_for: toIso(moment) },
  ])
  expect(await next()).toEqual(before)
  const { last_scheduled_for, decided_until } = state
  expect((await led.get('/schedules/nightly')).body.state).toMatchObject({ last_scheduled_for, decided_until })
  expect((await led.post('/schedules/nightly/trigger', { partitions: ['2024-02-31'] })).body.code).toBe('bad_selection')
  expect((await led.post('/schedules/hourly/trigger', { partitions: ['2024-02-01'] })).body.code).toBe('no_partitions')
})

test('[A67] a trigger that is repeated gets its first answer; under the id of another it is refused', async () => {
  const led = await open()
  const trigger = (body: object) => led.post('/schedules/nightly/trigger', { request_id: 'once', ...body })
  const first = await trigger({ partitions: ['2024-02-01', '2024-02-02'] })
  await led.clock.advance(MINUTE_MS)
  for (const same of [{}, { partitions: ['2024-02-02', '2024-02-01'] }])
    expect((await trigger(same)).body).toMatchObject({ run_id: first.body.run_id, created: false })
  for (const other of [{ partitions: ['2024-02-03'] }, { scheduled_for: toIso(fiveOf(led, 3)) }]) {
    const { status, body } = await trigger(other)
    expect([status, body.code]).toEqual([422, 'idempotency_key_reused'])
  }
  expect((await led.get('/conflicts')).body.conflicts).toEqual([])
})

test.each([
  [{ scheduled_for: '2999-01-01T00:00:00Z' }, 'in_the_future'],
  [{ scheduled_for: '2024-02-01T05:00:00Z', partitions: ['2024-01-31'] }, 'bad_trigger'],
  [{ scheduled_for: '2023-02-01T05:00:00Z' }, 'no_window'],
  [{ scheduled_for: 'yesterday' }, 'bad_body'],
  [{ partitions: [] }, 'bad_body'],
])('a trigger with %j is refused as %s', async (body, code) => {
  const led = await open()
  const answer = await led.post('/schedules/nightly/trigger', body)
  expect([answer.status, answer.body.code]).toEqual([400, code])
  expect((await led.get('/schedules/nightly/ticks')).body.ticks).toEqual([])
})

test('a schedule shows its last run, however that was triggered', async () => {
  const led = await open()
  const lastRun = async (name: string) => (await led.get(`/schedules/${name}`)).body.last_run
  expect(await lastRun('hourly')).toBeNull()
  const { run_id } = (await led.post('/schedules/hourly/trigger', {})).body
  const byHand = { run_id, cause: 'manual', requested_by: 'local' }
  expect(await lastRun('hourly')).toMatchObject(byHand)
  await led.clock.advance(MINUTE_MS)
  expect(await lastRun('hourly')).toMatchObject({ ...byHand, state: 'SUCCEEDED' })
  await led.clock.advance(HOUR_MS)
  const [listed] = (await led.get('/schedules')).body.schedules
  expect(listed.last_run).toMatchObject({ cause: 'cron', requested_by: null, state: 'SUCCEEDED' })
  expect(listed.last_run.scheduled_for).toBe(listed.state.last_scheduled_for)
})

test('[A67] a catch-up that is repeated under the same id gets the runs of the first, however the id is named', async () => {
  const led = await openLongAgo(3)
  const ticks = [2, 1].map((ago) => ({ schedule_id: 'nightly', scheduled_for: toIso(fiveOf(led, ago)) }))
  const first = (await led.post('/schedules/catchup', { ticks, request_id: 'once' })).body
  expect(first.accepted).toHaveLength(2)
  await led.clock.advance(MINUTE_MS)
  expect((await led.post('/schedules/catchup', { ticks, request_id: 'once' })).body).toEqual(first)
  expect((await led.post('/schedules/catchup', { ticks, client_request_id: 'once' })).body).toEqual(first)
  const header = { 'idempotency-key': 'once' }
  expect((await led.post('/schedules/catchup', { ticks }, undefined, header)).body).toEqual(first)
  const another = (await led.post('/schedules/catchup', { ticks, request_id: 'another' })).body
  expect(another.refused.map(({ code }: { code: string }) => code)).toEqual(['already_triggered', 'already_triggered'])
})

test('[A67] a repeated trigger or catch-up gets its first answer, although the schedule was changed or deleted since', async () => {
  const led = await open()
  const made = { name: 'by-api', cron_expressions: ['0 5 * * *'], asset_selection: ['orders'] }
  const { schedule_id } = (await led.post('/schedules', made)).body
  await led.post('/automation/pause', {})
  led.clock.jump(3 * DAY_MS)
  const ticks = [{ schedule_id, scheduled_for: toIso(fiveOf(led, 1)) }]
  const catchUp = async (request_id: string) => (await led.post('/schedules/catchup', { ticks, request_id })).body
  const trigger = (request_id: string) => led.post(`/schedules/${schedule_id}/trigger`, { request_id })
  const [caughtUp, triggered] = [await catchUp('c'), (await trigger('t')).body]
  expect(caughtUp.accepted).toHaveLength(1)
  const again = async () => {
    expect(await catchUp('c')).toEqual(caughtUp)
    expect((await trigger('t')).body).toMatchObject({ run_id: triggered.run_id, created: false })
  }
  await led.ask('PATCH', '/schedules/by-api', { cron_expressions: ['0 6 * * *'] })
  await again()
  expect((await catchUp('new')).refused).toMatchObject([{ code: 'not_a_tick' }])
  await led.ask('DELETE', '/schedules/by-api')
  await again()
  expect((await catchUp('new')).refused).toMatchObject([{ code: 'schedule_removed' }])
  expect((await trigger('new')).body.code).toBe('schedule_removed')
})

test('[A77] a catch-up runs no tick from before the schedule was declared', async () => {
  const led = await openLongAgo(2)
  const ticks = [4, 1].map((ago) => ({ schedule_id: 'nightly', scheduled_for: toIso(fiveOf(led, ago)) }))
  const { accepted, refused } = (await led.post('/schedules/catchup', { ticks })).body
  expect(accepted).toMatchObject([{ scheduled_for: ticks[1]?.scheduled_for }])
  expect(refused).toMatchObject([
    { code: 'not_declared_yet', reason: expect.stringMatching(/^nightly was declared at .*, after /) },
  ])
})

test('[A5] a dry run of a catch-up says what would be requested and what is refused, and records nothing', async () => {
  const led = await openLongAgo(12)
  await led.post('/automation/resume', {})
  const due = Math.floor(led.clock.now() / HOUR_MS + 1) * HOUR_MS
  await led.post('/schedules/hourly/pause', {})
  await led.clock.advance(due + HOUR_MS - led.clock.now() + MINUTE_MS)
  const asked = (name: string, ...moments: number[]) => moments.map((at) => ({ schedule_id: name, scheduled_for: toIso(at) }))
  const ticks = [
    ...asked('hourly', due, due, due + HOUR_MS, due + MINUTE_MS),
    ...asked('nightly', fiveOf(led, 10), fiveOf(led, 10), fiveOf(led, 9), fiveOf(led, -2)),
  ]
  const dry = await led.post('/schedules/catchup', { ticks, dry_run: true })
  expect(dry.status).toBe(200)
  expect(dry.body.accepted.map((one: { partitions: unknown }) => one.partitions)).toEqual([
    null,
    [dayOf(fiveOf(led, 11))],
    [dayOf(fiveOf(led, 10))],
  ])
  const codes = ['already_triggered', 'overlap', 'not_a_tick', 'already_triggered', 'in_the_future']
  expect(dry.body.refused.map((one: { code: string }) => one.code)).toEqual(codes)
  expect(dry.body.refused[2].reason).toMatch(/^hourly does not tick at .* \(UTC\), but at .*:00 and .*:00$/)
  expect((await led.get('/schedules/nightly/ticks')).body.ticks).toEqual([])
  const done = await led.post('/schedules/catchup', { ticks })
  expect(done.body.refused.map((one: { code: string }) => one.code)).toEqual(codes)
  expect(done.body.accepted).toMatchObject(dry.body.accepted.map(({ run_id: _, ...one }: { run_id: null }) => one))
})

test('[A61] a moment that somebody triggered later is said to have run late, and its own tick goes before that', async () => {
  const led = await open()
  const moment = fiveOf(led, 3)
  await led.post('/schedules/nightly/trigger', { scheduled_for: toIso(moment) })
  const why = async (at: number) => whyInWords((await led.get(`/why/schedule/nightly?at=${toIso(at)}`)).body, 'UTC')[0]?.text
  expect(await why(moment)).toMatch(/^nightly ran late for \S+ 05:00 \(UTC\): local triggered it at .*, as run_/)
  const own = fiveOf(led, 0)
  await led.clock.advance(own - led.clock.now() + MINUTE_MS)
  await led.post('/schedules/nightly/trigger', { scheduled_for: toIso(own) })
  expect(await why(own)).toMatch(/^nightly ran at \S+ 05:00 \(UTC\): on time, as run_/)
  const lines = whyInWords((await led.get('/why/schedule/nightly')).body, 'UTC').map(({ text }) => text)
  expect(lines[1]).toMatch(/^local triggered it at /)
})
