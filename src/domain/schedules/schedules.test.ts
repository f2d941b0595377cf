import { describe, expect, test } from 'vitest'
import { HOUR_MS } from '../../lib/time.ts'
import { RunStory, Story } from '../../testing/histories/story.ts'
import { AutomationPaused } from '../automation/automation-paused.event.ts'
import { runs } from '../runs/runs.table.ts'
import { pauseOf } from './regime.ts'
import { ScheduleDefined } from './schedule-defined.event.ts'
import { scheduleDefinitions } from './schedule-definitions.table.ts'
import { SchedulePaused } from './schedule-paused.event.ts'
import { ScheduleRemoved } from './schedule-removed.event.ts'
import { ScheduleResumed } from './schedule-resumed.event.ts'
import { scheduleState } from './schedule-state.table.ts'
import { ScheduleTicked } from './schedule-ticked.event.ts'
import { scheduleTicks } from './schedule-ticks.table.ts'
import { ScheduleTicksSkipped } from './schedule-ticks-skipped.event.ts'

const at = (hour: number) => `2025-01-15T${String(hour).padStart(2, '0')}:00:00.000Z`
const tick = (hour: number) => ({
  tick_id: `nightly:${hour}`,
  schedule_id: 'nightly',
  scheduled_for: at(hour),
  definition_version: 'v1',
  asset_selection: ['orders'],
})
const skipped = (hour: number) => ({ ...tick(hour), status: 'skipped' as const, reason: 'paused' })
const triggered = (hour: number) => ({
  ...tick(hour),
  status: 'triggered' as const,
  run_key: `sched:nightly:${hour}`,
  request_fingerprint: 'f1',
})
const definition = (assets: string[], more: object = {}) => ({
  schedule_id: 'nightly',
  schedule_name: 'nightly',
  cron_expressions: ['0 * * * *'],
  asset_selection: assets,
  definition_hash: JSON.stringify([assets, more]),
  request_id: JSON.stringify([assets, more]),
  ...more,
})
const request = (id: string) => ({ schedule_id: 'nightly', request_id: id, changed_by: 'ana' })
const runOf = (story: Story, hour: number) =>
  new RunStory(story, `nightly:${hour}`, { type: 'schedule', schedule_id: 'nightly', tick_id: `nightly:${hour}` })

describe('a tick', () => {
  test('[I19] leads to its run key, and the run back to its tick, whichever is heard of first', () => {
    const story = new Story()
    const run = runOf(story, 10)
    expect(run.requested()).toMatchObject({ kind: 'parked' })
    story.tell(ScheduleTicked, triggered(10))
    expect(story.row(scheduleTicks, 'nightly:10')).toMatchObject({
      status: 'triggered',
      run_key: run.runKey,
      run_id: run.runId,
    })
  })

  test('[I18] that two controllers record is one tick, as the first told it', () => {
    const story = new Story()
    story.tell(ScheduleTicked, skipped(10))
    const before = story.bench.rows()
    expect(story.tell(ScheduleTicked, { ...skipped(10), reason: 'told differently' })).toEqual({ kind: 'duplicate' })
    expect(story.bench.rows()).toEqual(before)
  })

  test('[A5] that was skipped may be triggered later, once; one that was triggered is final', () => {
    const story = new Story()
    story.tell(ScheduleTicked, skipped(10))
    expect(story.tell(ScheduleTicked, triggered(10))).toEqual({ kind: 'applied' })
    expect(story.tell(ScheduleTicked, { ...triggered(10), request_fingerprint: 'f2' })).toEqual({ kind: 'duplicate' })
    expect(story.tell(ScheduleTicked, skipped(10))).toEqual({ kind: 'duplicate' })
    expect(story.rows(scheduleTicks)).toMatchObject([{ status: 'triggered', reason: null, request_fingerprint: 'f1' }])
  })

  test('[A5] that was skipped or failed makes no run, whatever is asked for in its name', () => {
    const story = new Story()
    story.tell(ScheduleTicked, skipped(10))
    story.tell(ScheduleTicked, { ...skipped(11), status: 'failed', reason: 'selects nothing' })
    for (const hour of [10, 11])
      expect(runOf(story, hour).requested()).toEqual({ kind: 'ignored', reason: 'tick_not_triggered' })
    expect(story.rows(runs)).toEqual([])
  })

  test('[A5] makes the run of its own key, and no other', () => {
    const story = new Story()
    story.tell(ScheduleTicked, { ...triggered(10), run_key: 'sched:nightly:another' })
    expect(runOf(story, 10).requested()).toEqual({ kind: 'ignored', reason: 'tick_not_triggered' })
  })

  test('says what it asked for, and a manual one who asked', () => {
    const story = new Story()
    const { request_fingerprint: _, ...silent } = triggered(10)
    expect(story.tell(ScheduleTicked, silent)).toMatchObject({ kind: 'parked', reason: 'invalid_payload' })
    expect(story.tell(ScheduleTicked, { ...triggered(11), cause: 'manual' })).toMatchObject({ kind: 'parked' })
    expect(story.tell(ScheduleTicked, { ...triggered(12), cause: 'manual', requested_by: 'ana' })).toEqual({ kind: 'applied' })
  })

  test('[A2] keeps the definition of its moment when the schedule is changed afterwards', () => {
    const story = new Story()
    story.tell(ScheduleDefined, definition(['orders']))
    story.tell(ScheduleTicked, skipped(10))
    story.tell(ScheduleDefined, definition(['revenue']))
    expect(story.row(scheduleDefinitions, 'nightly')?.asset_selection).toEqual(['revenue'])
    expect(story.row(scheduleTicks, 'nightly:10')).toMatchObject({ asset_selection: ['orders'], definition_version: 'v1' })
  })

  test('[A6] of many that were skipped together there is one row, which says how many', () => {
    const story = new Story()
    const span = { schedule_id: 'nightly', first: at(10), last: at(20), tick_count: 11, definition_version: 'v1' }
    const told = { ...span, reason_code: 'paused' as const, reason: 'paused by ana' }
    expect(story.tell(ScheduleTicksSkipped, told)).toEqual({ kind: 'applied' })
    expect(story.tell(ScheduleTicksSkipped, told)).toEqual({ kind: 'duplicate' })
    expect(story.rows(scheduleTicks)).toMatchObject([{ tick_count: 11, scheduled_for: Date.parse(at(10)), status: 'skipped' }])
    expect(story.row(scheduleState, 'nightly')).toMatchObject({ decided_until: Date.parse(at(20)) })
  })
})

describe('a schedule', () => {
  test('stands at its latest tick; a manual tick does not move it', () => {
    const story = new Story()
    for (const hour of [9, 10, 11]) story.tell(ScheduleTicked, skipped(hour))
    story.tell(ScheduleTicked, { ...skipped(12), tick_id: 'nightly:manual:1', cause: 'manual', requested_by: 'ana' })
    expect(story.row(scheduleState, 'nightly')).toMatchObject({ last_tick_id: 'nightly:11', decided_until: Date.parse(at(11)) })
    expect(story.rows(scheduleTicks)).toHaveLength(4)
  })

  test('[A7] that is declared again as it is keeps its version', () => {
    const story = new Story()
    story.tell(ScheduleDefined, definition(['orders']))
    const before = story.row(scheduleDefinitions, 'nightly')
    story.tell(ScheduleDefined, { ...definition(['orders']), request_id: 'the next start' })
    expect(story.row(scheduleDefinitions, 'nightly')).toEqual(before)
  })

  test('[A8] remembers where it comes from, when it was made, changed, renamed and removed, and comes back under its id', () => {
    const story = new Story()
    story.tell(ScheduleDefined, definition(['orders'], { origin: 'api' }))
    const created_at = story.row(scheduleDefinitions, 'nightly')?.created_at
    story.tell(ScheduleDefined, definition(['orders'], { origin: 'api', schedule_name: 'every night' }))
    const renamed = story.row(scheduleDefinitions, 'nightly')
    expect(renamed).toMatchObject({ origin: 'api', created_at, renamed_from: 'nightly', schedule_name: 'every night' })
    expect(renamed?.defined_at).toBeGreaterThan(created_at ?? 0)
    story.tell(ScheduleRemoved, { schedule_id: 'nightly', request_id: 'r1', removed_by: 'ana' })
    expect(story.row(scheduleDefinitions, 'nightly')?.removed_at).not.toBeNull()
    story.tell(ScheduleDefined, definition(['orders'], { request_id: 'back' }))
    expect(story.row(scheduleDefinitions, 'nightly')).toMatchObject({ removed_at: null, created_at })
  })

  test.each([
    [{ cron_expressions: ['not a cron'] }, 'cron_expressions'],
    [{ cron_expressions: ['0 5 * * *', '61 * * * *'] }, 'cron_expressions'],
    [{ cron_expressions: ['0 0 30 2 *'] }, 'cron_expressions'],
    [{ cron_expressions: ['@never'] }, 'cron_expressions'],
    [{ timezone: 'Mars/Base' }, 'timezone'],
    [{ timezone: '-08:00' }, 'timezone'],
  ])('[A9] with %j is refused', (more, path) => {
    const parsed = ScheduleDefined.parse(definition(['orders'], more))
    expect(parsed.success ? [] : parsed.error.issues.map((issue) => issue.path[0])).toEqual([path])
  })

  test('[A8] says who paused it, when and why; pausing all automation pauses it too', () => {
    const story = new Story()
    story.tell(ScheduleDefined, definition(['orders']))
    story.tell(SchedulePaused, { ...request('r1'), reason: 'the warehouse is down' })
    const state = () => story.row(scheduleState, 'nightly')
    expect(state()).toMatchObject({ status: 'PAUSED', status_changed_by: 'ana', status_reason: 'the warehouse is down' })
    story.tell(ScheduleResumed, request('r2'))
    story.tell(AutomationPaused, { request_id: 'r3', changed_by: 'bob' })
    expect(state()?.status).toBe('ACTIVE')
    expect(pauseOf(story.bench.state, state())).toMatchObject({ by: 'bob', everything: true })
  })

  test('[I18] that was resumed is not paused again by a pause that is repeated', () => {
    const story = new Story()
    story.tell(SchedulePaused, request('r1'))
    story.tell(ScheduleResumed, request('r2'))
    expect(story.tell(SchedulePaused, request('r1'))).toEqual({ kind: 'duplicate' })
    expect(story.row(scheduleState, 'nightly')?.status).toBe('ACTIVE')
  })

  test('keeps for its controller what was due before a change, with the definition of then', () => {
    const story = new Story()
    story.tell(ScheduleDefined, definition(['orders']))
    const declared = story.row(scheduleDefinitions, 'nightly')
    story.tell(ScheduleDefined, definition(['revenue']))
    const [regime] = story.row(scheduleState, 'nightly')?.undecided ?? []
    expect(regime).toMatchObject({ from: declared?.defined_at, pause: null, definition: { asset_selection: ['orders'] } })
    expect((regime?.until ?? 0) - (regime?.from ?? 0)).toBeLessThan(HOUR_MS)
  })

  test('knows which of its runs are unfinished, and how the last ones ended', () => {
    const story = new Story()
    for (const hour of [10, 11]) story.tell(ScheduleTicked, triggered(hour))
    const [first, second] = [runOf(story, 10), runOf(story, 11)]
    for (const run of [first, second]) {
      run.requested()
      run.planned({ orders: [] })
    }
    expect(story.row(scheduleState, 'nightly')?.open_runs).toEqual([first.runId, second.runId].sort())
    second.dispatched('orders')
    second.failed('orders')
    expect(story.row(scheduleState, 'nightly')).toMatchObject({
      open_runs: [first.runId],
      recent_runs: [{ run_id: second.runId, state: 'FAILED' }],
    })
  })
})
