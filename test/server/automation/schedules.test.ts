import { describe, expect, test } from 'vitest'
import { projectManifest } from '../../../src/contract/project-manifest.ts'
import { scheduleDefinitions } from '../../../src/domain/schedules/schedule-definitions.table.ts'
import { scheduleTicks } from '../../../src/domain/schedules/schedule-ticks.table.ts'
import { HOUR_MS, MINUTE_MS, toIso } from '../../../src/lib/time.ts'
import { Led } from '../led.ts'

const assets = [{ asset_key: 'orders', kind: 'asset' as const }]
const hourly = { name: 'hourly', cron_expressions: ['0 * * * *'], asset_selection: ['orders'] }
const project = { assets, schedules: [hourly] }

const open = (automation = true) => Led.open(project, { automation })
const definitions = (led: Led) => [...led.server.orchestrator.readable.state.hot(scheduleDefinitions).all()]
const nextHour = (led: Led): number => Math.floor(led.clock.now() / HOUR_MS + 1) * HOUR_MS

/** The events of every segment in the ledger, oldest first. */
async function segments(led: Led): Promise<string[][]> {
  const found: string[][] = []
  for await (const { path } of led.memory.store.list(led.paths.ledger)) {
    const bytes = await led.memory.store.get(path)
    const { events } = JSON.parse(new TextDecoder().decode(bytes)) as { events: { event_type: string }[] }
    found.push(events.map((event) => event.event_type))
  }
  return found
}

describe('a server', () => {
  test('[A1] writes a tick, its run request and the plan of the run in one segment, when the tick is due', async () => {
    const led = await open()
    await led.clock.advance(nextHour(led) - led.clock.now() - 1)
    expect((await segments(led)).flat()).not.toContain('ScheduleTicked')
    await led.clock.advance(MINUTE_MS)
    const segment = (await segments(led)).find((events) => events.includes('ScheduleTicked'))
    expect(segment?.slice(0, 3)).toEqual(['ScheduleTicked', 'RunRequested', 'PlanCreated'])
    const [id] = definitions(led).map(({ schedule_id }) => schedule_id)
    const { body } = await led.get(`/schedules/${id}`)
    expect(body.state).toMatchObject({ last_tick_status: 'triggered', open_runs: [] })
  })

  test('[A69] goes on by the clock as it is, when that is set back or ahead while it runs', async () => {
    const led = await Led.open({ assets, schedules: [{ ...hourly, cron_expressions: ['* * * * *'] }] }, { automation: true })
    const ticks = async () => (await led.get('/schedules/hourly/ticks?status=triggered&limit=1000')).body.ticks.length
    await led.clock.advance(3 * MINUTE_MS)
    for (const step of [-2 * HOUR_MS, 5 * HOUR_MS, -40 * MINUTE_MS]) {
      led.clock.jump(step)
      await led.clock.advance(MINUTE_MS)
      const before = await ticks()
      await led.clock.advance(5 * MINUTE_MS)
      expect(await ticks(), `after ${step}`).toBe(before + 5)
    }
  })

  test.each([
    ['a selection', { asset_selection: ['orders\n'] }],
    ['a long selection', { asset_selection: ['o'.repeat(600)] }],
    ['a partition', { partition_selection: ['2025-01-01\n'] }],
    ['the name of a label', { labels: { 'team\n': 'shop' } }],
    ['labels', { labels: Object.fromEntries(Array.from({ length: 120 }, (_, i) => [`l${i}`, 'x'.repeat(8_000)])) }],
  ])('[A9] refuses %s that no tick could carry', async (_, wrong) => {
    const led = await open()
    const { status } = await led.post('/schedules', { ...hourly, name: 'other', ...wrong })
    expect(status).toBe(400)
    await led.clock.advance(2 * HOUR_MS)
    expect(led.stopped).toEqual([])
  })

  test('[A11] takes a request id of any length for a manual trigger', async () => {
    const led = await open()
    for (const request_id of ['r'.repeat(480), 'ü'.repeat(200)])
      expect((await led.post('/schedules/hourly/trigger', { request_id })).status).toBe(202)
  })

  test('without automation neither ticks nor records what the project declares', async () => {
    const led = await open(false)
    await led.clock.advance(3 * HOUR_MS)
    expect((await segments(led)).flat()).not.toContain('ScheduleTicked')
    expect(definitions(led)).toEqual([])
    await led.post('/schedules', hourly)
    expect((await led.get('/automation')).body).toMatchObject({ status: 'active', is_on: false })
    expect((await led.get('/why/schedule/hourly')).body.because).toMatchObject([
      { code: 'never_due' },
      { code: 'automation_off' },
    ])
    expect((await (await open()).get('/automation')).body.is_on).toBe(true)
  })

  test('[A7] records a schedule once, changes it when the project does, and retires it when that no longer declares it', async () => {
    const led = await open()
    const load = (schedules: object[]) => led.server.define(projectManifest.parse({ project: 'led', assets, schedules }))
    const [first] = definitions(led)
    await load([hourly])
    expect(definitions(led)).toEqual([first])
    expect(await load([{ ...hourly, cron_expressions: ['30 * * * *'] }])).toEqual({ assets: 0, schedules: 1, sensors: 0 })
    expect(definitions(led)).toMatchObject([{ schedule_id: first?.schedule_id, cron_expressions: ['30 * * * *'] }])
    expect(await load([])).toEqual({ assets: 0, schedules: 1, sensors: 0 })
    expect(definitions(led)[0]?.removed_at).not.toBeNull()
    expect((await led.get('/schedules')).body).toEqual({ schedules: [], next_cursor: null })
  })
})

describe('the routes of schedules', () => {
  const made = { name: 'nightly', cron_expressions: ['0 5 * * *'], timezone: 'Europe/Paris', asset_selection: ['orders'] }

  test('make, show, change and delete a schedule that is not in code', async () => {
    const led = await open()
    const { status, body } = await led.post('/schedules', made)
    expect([status, body.message]).toEqual([202, 'schedule made'])
    expect(body).toMatchObject({ schedule_name: 'nightly', accepted_event_id: expect.any(String) })
    expect((await led.post('/schedules', made)).status).toBe(409)
    const shown = await led.get('/schedules/nightly')
    expect(shown.body).toMatchObject({ status: 'active', definition: { origin: 'api', max_catchup_ticks: null } })
    expect(shown.body.next_ticks).toHaveLength(5)
    const changed = await led.ask('PATCH', `/schedules/${body.schedule_id}`, { name: 'every-night', overlap: 'skip' })
    expect(changed.status).toBe(202)
    const now = (await led.get('/schedules/every-night')).body.definition
    expect(now).toMatchObject({ overlap: 'skip', timezone: 'Europe/Paris', renamed_from: 'nightly' })
    expect((await led.ask('DELETE', '/schedules/every-night')).status).toBe(202)
    expect((await led.get('/schedules/every-night')).body.status).toBe('removed')
  })

  test.each([
    ['POST', '/schedules', { ...made, cron_expressions: ['61 * * * *'] }, 400, 'bad_schedule'],
    ['POST', '/schedules', { ...made, timezone: 'Mars/Base' }, 400, 'bad_schedule'],
    ['POST', '/schedules', { ...made, timezone: '+05:30' }, 400, 'bad_schedule'],
    ['POST', '/schedules', { ...made, colour: 'red' }, 400, 'bad_body'],
    ['POST', '/schedules', { ...made, partition_selection: ['2025-01-01'] }, 400, 'no_partitions'],
    ['POST', '/schedules', { ...made, asset_selection: ['orders', 'nope'] }, 400, 'bad_selection'],
    ['POST', '/schedules', { ...made, start_at: '2025-02-01T00:00:00Z', end_at: '2025-01-01T00:00:00Z' }, 400, 'bad_schedule'],
    ['PATCH', '/schedules/hourly', { priority: 1 }, 409, 'declared_in_code'],
    ['DELETE', '/schedules/hourly', undefined, 409, 'declared_in_code'],
    ['POST', '/schedules/nothing/pause', {}, 404, 'no_such_schedule'],
    ['GET', '/schedules/hourly/ticks?cursor=x', undefined, 400, 'bad_cursor'],
    ['GET', '/schedules/hourly/ticks?limit=0', undefined, 400, 'bad_query'],
  ])('refuse %s %s %j with %d %s, and record nothing', async (method, path, body, status, code) => {
    const led = await open()
    const before = (await segments(led)).length
    const answer = await led.ask(method, path, body)
    expect([answer.status, answer.body.code]).toEqual([status, code])
    expect(await segments(led)).toHaveLength(before)
  })

  test('[A8] one whose end has come has ended; each says how many missed ticks it catches up on', async () => {
    const led = await open()
    await led.post('/schedules', { ...made, name: 'past', end_at: '2025-01-01T00:00:00Z', max_catchup_ticks: 7 })
    expect((await led.get('/schedules/past')).body).toMatchObject({ status: 'ended', next_ticks: [], catchup_limit: 7 })
    expect((await led.get('/schedules/hourly')).body).toMatchObject({ status: 'active', catchup_limit: 1 })
  })

  test('[A9] a zone or an expression that cannot be read is refused with what to write', async () => {
    const led = await open()
    const hintOf = async (wrong: object) => (await led.post('/schedules', { ...made, ...wrong })).body.hint
    expect(await hintOf({ timezone: 'Mars/Base' })).toMatch(/Europe\/Paris/)
    expect(await hintOf({ cron_expressions: ['61 * * * *'] })).toEqual(expect.any(String))
  })

  test('a change must change something, and select assets that there are', async () => {
    const led = await open()
    await led.post('/schedules', made)
    expect((await led.ask('PATCH', '/schedules/nightly', {})).body.code).toBe('no_changes')
    expect((await led.ask('PATCH', '/schedules/nightly', { request_id: 'r' })).body.code).toBe('no_changes')
    expect((await led.ask('PATCH', '/schedules/nightly', { asset_selection: ['nope'] })).body.code).toBe('bad_selection')
    expect((await led.ask('PATCH', '/schedules/nightly', { enabled: false })).status).toBe(202)
  })

  test('a disabled schedule stays so when it is resumed, and is triggered all the same', async () => {
    const led = await open()
    await led.post('/schedules', { ...made, enabled: false })
    const disabled = 'it is disabled. Enable it: servo schedules update nightly --enable'
    const resumed = async () => (await led.post('/schedules/nightly/resume', {})).body.message
    expect(await resumed()).toBe(`nightly is not paused; ${disabled}`)
    expect((await led.post('/schedules/nightly/pause', {})).body.message).toBe(
      'schedule paused. Resume it: servo schedules resume nightly',
    )
    expect(await resumed()).toBe(`schedule resumed; ${disabled}`)
    expect((await led.post('/schedules/nightly/trigger', {})).body).toMatchObject({ created: true })
  })

  test('[A8] pause and resume a schedule, once each, on record with who and why', async () => {
    const led = await open()
    await led.post('/schedules/hourly/pause', { reason: 'the warehouse is down' })
    expect((await led.post('/schedules/hourly/pause', {})).body).toMatchObject({ accepted_event_id: null })
    expect((await led.get('/schedules/hourly')).body).toMatchObject({
      status: 'paused',
      status_reason: 'paused by local: the warehouse is down',
      next_ticks: [],
    })
    await led.clock.advance(HOUR_MS)
    expect((await segments(led)).flat()).toContain('ScheduleTicksSkipped')
    await led.post('/schedules/hourly/resume', {})
    expect((await led.get('/schedules/hourly')).body.status).toBe('active')
  })

  test('trigger a tick that does not disturb the cadence; the same request twice is one run', async () => {
    const led = await open()
    const due = nextHour(led)
    await led.clock.advance(10 * MINUTE_MS)
    const first = (await led.post('/schedules/hourly/trigger', { request_id: 'once' })).body
    const again = (await led.post('/schedules/hourly/trigger', { request_id: 'once' })).body
    expect(again).toMatchObject({ run_id: first.run_id, tick_id: first.tick_id, created: false })
    expect(first.created).toBe(true)
    expect((await led.get('/schedules/hourly')).body.next_ticks[0]).toBe(toIso(due))
  })

  test('[I12] change a cron, which ticks from the change on, also after the clock was set back', async () => {
    const led = await Led.open({ assets }, { automation: true })
    await led.post('/schedules', { ...hourly, cron_expressions: ['0 0 1 1 *'], max_catchup_ticks: 3 })
    await led.clock.advance(6 * MINUTE_MS)
    led.clock.jump(-2 * HOUR_MS)
    await led.clock.advance(MINUTE_MS)
    await led.ask('PATCH', '/schedules/hourly', { priority: 1 })
    await led.clock.advance(40 * MINUTE_MS)
    await led.ask('PATCH', '/schedules/hourly', { cron_expressions: ['*/5 * * * *'] })
    await led.clock.advance(1)
    expect((await led.get('/schedules/hourly/ticks')).body.ticks).toEqual([])
  })

  test('[A5] catch up on ticks of the cron that are missing or were skipped; others are refused one by one', async () => {
    const led = await open()
    const [id = ''] = definitions(led).map(({ schedule_id }) => schedule_id)
    const due = nextHour(led)
    await led.post('/schedules/hourly/pause', {})
    await led.clock.advance(due - led.clock.now() + MINUTE_MS)
    const ticks = [due, due + MINUTE_MS, due + HOUR_MS].map((at) => ({ schedule_id: id, scheduled_for: toIso(at) }))
    const { status, body } = await led.post('/schedules/catchup', { ticks: [...ticks, { ...ticks[0], schedule_id: 'other' }] })
    expect(status).toBe(202)
    expect(body.accepted).toMatchObject([{ scheduled_for: toIso(due), run_id: expect.stringMatching(/^run_/) }])
    expect(body.refused.map((one: { reason: string }) => one.reason)).toEqual([
      expect.stringContaining('does not tick at'),
      expect.stringContaining('is in the future'),
      expect.stringContaining('schedule "other" not found'),
    ])
    const [tick] = await led.server.orchestrator.readable.coldRows(scheduleTicks).lookup([[`${id}:${due / 1_000}`]])
    expect(tick).toMatchObject({ status: 'triggered', cause: 'catch_up', requested_by: 'local' })
    expect((await led.post('/schedules/catchup', { ticks: ticks.slice(0, 1) })).body.refused).toHaveLength(1)
  })

  test('[A77][I12] a tick of a pause that is caught up by hand leaves those before it to be recorded', async () => {
    const led = await Led.open({ assets, schedules: [{ ...hourly, cron_expressions: ['*/5 * * * *'] }] }, { automation: true })
    const [id = ''] = definitions(led).map(({ schedule_id }) => schedule_id)
    const first = nextHour(led)
    await led.clock.advance(first - led.clock.now() + MINUTE_MS)
    await led.post('/schedules/hourly/pause', {})
    await led.clock.advance(41 * MINUTE_MS)
    const asked = { schedule_id: id, scheduled_for: toIso(first + 40 * MINUTE_MS) }
    expect((await led.post('/schedules/catchup', { ticks: [asked] })).body.accepted).toHaveLength(1)
    await led.post('/schedules/hourly/resume', {})
    await led.clock.advance(1)
    const { ticks } = (await led.get('/schedules/hourly/ticks?status=skipped')).body
    const before = { scheduled_for: toIso(first + 10 * MINUTE_MS), scheduled_until: asked.scheduled_for, tick_count: 6 }
    expect(ticks).toContainEqual(expect.objectContaining({ ...before, reason_code: 'paused' }))
  })

  test('[A77][I12] ticks that were skipped together and are caught up by hand are counted as triggered, and no more as skipped', async () => {
    const led = await Led.open({ assets, schedules: [{ ...hourly, cron_expressions: ['*/5 * * * *'] }] }, { automation: true })
    const [id = ''] = definitions(led).map(({ schedule_id }) => schedule_id)
    const first = nextHour(led)
    await led.clock.advance(first - led.clock.now() - 1)
    await led.post('/schedules/hourly/pause', {})
    await led.clock.advance(16 * MINUTE_MS)
    await led.post('/schedules/hourly/resume', {})
    await led.clock.advance(1)
    const skipped = async () => {
      const { ticks } = (await led.get('/schedules/hourly/ticks?limit=1000&status=skipped')).body
      return ticks.map((tick: { tick_count: number }) => tick.tick_count)
    }
    expect(await skipped()).toEqual([3])
    const catchUp = async (...minutes: number[]) => {
      const ticks = minutes.map((minute) => ({ schedule_id: id, scheduled_for: toIso(first + minute * MINUTE_MS) }))
      expect((await led.post('/schedules/catchup', { ticks })).body.accepted).toHaveLength(minutes.length)
    }
    await catchUp(10)
    expect(await skipped()).toEqual([2])
    await catchUp(15, 5)
    expect(await skipped()).toEqual([])
    const [span] = await led.server.orchestrator.readable
      .coldRows(scheduleTicks)
      .lookup([[`${id}:${(first + 5 * MINUTE_MS) / 1_000}..${(first + 15 * MINUTE_MS) / 1_000}`]])
    expect(span).toMatchObject({ status: 'skipped', tick_count: 0 })
    const again = { schedule_id: id, scheduled_for: toIso(first + 10 * MINUTE_MS) }
    expect((await led.post('/schedules/catchup', { ticks: [again] })).body.refused).toHaveLength(1)
    const why = (await led.get(`/why/schedule/hourly?at=${toIso(first + 5 * MINUTE_MS)}`)).body
    expect(why.verdict).toBe('ran')
  })

  test('[A77] a tick of another cron, or one that was asked for by hand before, is counted rightly when it is caught up', async () => {
    const led = await Led.open({ assets, schedules: [] }, { automation: true })
    await led.post('/schedules', { ...made, name: 'fives', cron_expressions: ['*/5 * * * *'] })
    const first = nextHour(led)
    await led.clock.advance(first - led.clock.now() - 1)
    await led.post('/schedules/fives/pause', {})
    await led.clock.advance(16 * MINUTE_MS)
    await led.post('/schedules/fives/resume', {})
    await led.clock.advance(1)
    const skipped = async () => (await led.get('/schedules/fives/ticks?status=skipped')).body.ticks[0]?.tick_count
    const catchUp = async (minute: number) => {
      const ticks = [{ schedule_id: 'fives', scheduled_for: toIso(first + minute * MINUTE_MS) }]
      expect((await led.post('/schedules/catchup', { ticks })).body.accepted).toHaveLength(1)
    }
    await led.post('/schedules/fives/trigger', { scheduled_for: toIso(first + 5 * MINUTE_MS) })
    expect(await skipped()).toBe(3)
    await catchUp(5)
    expect(await skipped()).toBe(2)
    await led.ask('PATCH', '/schedules/fives', { cron_expressions: ['* * * * *'] })
    for (const minute of [6, 7, 8]) await catchUp(minute)
    expect(await skipped()).toBe(2)
    await catchUp(15)
    expect(await skipped()).toBe(1)
  })

  test('[A67] a request that is repeated gets its first answer, whatever happened since, and changes nothing', async () => {
    const led = await open()
    const asked = { ...made, request_id: 'once' }
    const [first, second] = await Promise.all([led.post('/schedules', asked), led.post('/schedules', asked)])
    expect(first.status).toBe(202)
    expect(second).toEqual(first)
    const at = `/schedules/${first.body.schedule_id}`
    const paused = await led.post(`${at}/pause`, { request_id: 'p' })
    await led.post(`${at}/resume`, {})
    const removed = await led.ask('DELETE', `${at}?request_id=gone`)
    const before = await segments(led)
    expect(await led.post('/schedules', asked)).toEqual(first)
    expect(await led.post(`${at}/pause`, { request_id: 'p' })).toEqual(paused)
    expect(await led.ask('DELETE', `${at}?request_id=gone`)).toEqual(removed)
    expect(await segments(led)).toEqual(before)
    const other = await led.post('/schedules', { ...asked, name: 'another' })
    expect([other.status, other.body.code]).toEqual([422, 'idempotency_key_reused'])
  })

  test('[A67] a request goes by request_id, client_request_id or the header Idempotency-Key', async () => {
    const led = await open()
    const trigger = (body: object, headers = {}) => led.post('/schedules/hourly/trigger', body, undefined, headers)
    const { body } = await trigger({ request_id: 'x' })
    expect((await trigger({ client_request_id: 'x' })).body).toMatchObject({ run_id: body.run_id, created: false })
    expect((await trigger({}, { 'idempotency-key': '"x"' })).body).toMatchObject({ run_id: body.run_id, created: false })
    const run = (more: object, headers = {}) => led.post('/runs', { select: ['orders'], ...more }, undefined, headers)
    const { run_id } = (await run({ request_id: 'y' })).body
    expect((await run({}, { 'idempotency-key': 'y' })).body).toMatchObject({ run_id, created: false })
    expect((await run({ client_request_id: 'y' }, { 'idempotency-key': 'z' })).body.code).toBe('bad_request_id')
  })

  test('[A68] a change that expects another state version is refused, and told both; ticks do not raise it', async () => {
    const led = await open()
    await led.post('/schedules', { ...made, cron_expressions: ['0 * * * *'] })
    const version = async () => (await led.get('/schedules/nightly')).body.state.state_version
    const at = (what: string, expected: number) => `/schedules/nightly${what}?expected_state_version=${expected}`
    expect(await version()).toBe(1)
    await led.clock.advance(HOUR_MS)
    expect((await led.get('/schedules/nightly')).body.state.last_tick_status).toBe('triggered')
    // Of two that saw the same state, one is too late.
    const both = await Promise.all([led.post(at('/pause', 1), {}), led.ask('PATCH', at('', 1), { priority: 5 })])
    expect(both.map(({ status }) => status)).toEqual([202, 409])
    expect(both[1]?.body).toMatchObject({ code: 'state_changed', detail: expect.stringContaining('version 2') })
    expect(await version()).toBe(2)
    const refused = [
      await led.ask('PATCH', at('', 1), { priority: 5 }),
      await led.ask('DELETE', at('', 1)),
      await led.post(at('/resume', 1), {}),
      await led.post(at('/trigger', 1), {}),
    ]
    expect(refused.map(({ body }) => body.code)).toEqual(refused.map(() => 'state_changed'))
    expect((await led.ask('PATCH', at('', 2), { priority: 5 })).status).toBe(202)
    expect((await led.post(at('/trigger', 3), {})).status).toBe(202)
    expect((await led.post(at('/resume', 3), {})).status).toBe(202)
    expect((await led.ask('DELETE', at('', 4))).status).toBe(202)
    expect((await led.post('/schedules/hourly/pause?expected_state_version=x', {})).body.code).toBe('bad_query')
  })

  test('pause and resume everything at once', async () => {
    const led = await open()
    expect((await led.get('/automation')).body.status).toBe('active')
    await led.post('/automation/pause', { reason: 'maintenance' })
    expect((await led.get('/automation')).body).toMatchObject({ status: 'paused', changed_by: 'local', reason: 'maintenance' })
    expect((await led.get('/schedules/hourly')).body.status_reason).toBe('all automation was paused by local: maintenance')
    await led.post('/automation/resume', {})
    expect((await led.get('/schedules/hourly')).body.status).toBe('active')
  })
})
