import { describe, expect, test } from 'vitest'
import { RunStory, Story } from '../../testing/histories/story.ts'
import { ScheduleDefined } from './schedule-defined.event.ts'
import { scheduleDefinitions } from './schedule-definitions.table.ts'
import { SchedulePaused } from './schedule-paused.event.ts'
import { ScheduleResumed } from './schedule-resumed.event.ts'
import { scheduleState } from './schedule-state.table.ts'
import { ScheduleTicked } from './schedule-ticked.event.ts'
import { scheduleTicks } from './schedule-ticks.table.ts'

const at = (hour: number) => `2025-01-15T${String(hour).padStart(2, '0')}:00:00.000Z`
const skipped = (hour: number) => ({
  tick_id: `nightly:${hour}`,
  schedule_id: 'nightly',
  scheduled_for: at(hour),
  definition_version: 'v1',
  asset_selection: ['orders'],
  status: 'skipped' as const,
  reason: 'paused',
})
const definition = (assets: string[]) => ({
  schedule_id: 'nightly',
  schedule_name: 'nightly',
  cron_expressions: ['0 * * * *'],
  asset_selection: assets,
  definition_hash: assets.join(),
  request_id: assets.join(),
})

describe('a schedule', () => {
  test('[I19] a tick leads to its run key, and the run back to its tick, whichever is heard of first', () => {
    const story = new Story()
    const run = new RunStory(story, 'nightly:10', { type: 'schedule', schedule_id: 'nightly', tick_id: 'nightly:10' })
    run.requested()
    const { reason: _, ...tick } = skipped(10)
    story.tell(ScheduleTicked, { ...tick, status: 'triggered', run_key: run.runKey, request_fingerprint: 'same' })
    expect(story.row(scheduleTicks, 'nightly:10')).toMatchObject({
      status: 'triggered',
      run_key: run.runKey,
      run_id: run.runId,
    })
  })

  test('[I18] a tick that two controllers record is one tick, as the first told it', () => {
    const story = new Story()
    story.tell(ScheduleTicked, skipped(10))
    const before = story.bench.rows()
    expect(story.tell(ScheduleTicked, { ...skipped(10), reason: 'told differently' })).toEqual({ kind: 'duplicate' })
    expect(story.bench.rows()).toEqual(before)
  })

  test('stands at its latest tick when ticks arrive out of order; a manual tick does not move it', () => {
    const story = new Story()
    for (const hour of [11, 9, 10]) story.tell(ScheduleTicked, skipped(hour))
    story.tell(ScheduleTicked, { ...skipped(12), tick_id: 'nightly:manual:1', cause: 'manual', requested_by: 'ada' })
    expect(story.row(scheduleState, 'nightly')?.last_tick_id).toBe('nightly:11')
    expect(story.rows(scheduleTicks)).toHaveLength(4)
  })

  test('[A2] a tick keeps the definition of its moment when the schedule is changed afterwards', () => {
    const story = new Story()
    story.tell(ScheduleDefined, definition(['orders']))
    story.tell(ScheduleTicked, skipped(10))
    story.tell(ScheduleDefined, definition(['revenue']))
    expect(story.row(scheduleDefinitions, 'nightly')?.asset_selection).toEqual(['revenue'])
    expect(story.row(scheduleTicks, 'nightly:10')).toMatchObject({ asset_selection: ['orders'], definition_version: 'v1' })
  })

  test('[I3] is what the newest declaration says, and paused or not as the newest request says, in whatever order they arrive', () => {
    const story = new Story()
    const older = story.write(ScheduleDefined, definition(['orders']))
    const paused = story.write(SchedulePaused, { schedule_id: 'nightly', request_id: 'r1', changed_by: 'ada' })
    story.tell(ScheduleDefined, definition(['revenue']))
    story.tell(ScheduleResumed, { schedule_id: 'nightly', request_id: 'r2', changed_by: 'ada' })
    story.hear(older)
    story.hear(paused)
    expect(story.row(scheduleDefinitions, 'nightly')?.asset_selection).toEqual(['revenue'])
    expect(story.row(scheduleState, 'nightly')?.status).toBe('ACTIVE')
  })

  test('[I3] a pause that was overtaken by a resume does not come back when it is repeated under a newer id', () => {
    const story = new Story()
    const pause = { schedule_id: 'nightly', request_id: 'r1', changed_by: 'ada' }
    const late = story.write(SchedulePaused, pause)
    story.tell(ScheduleResumed, { ...pause, request_id: 'r2' })
    story.hear(late)
    expect(story.tell(SchedulePaused, pause)).toEqual({ kind: 'duplicate' })
    expect(story.row(scheduleState, 'nightly')?.status).toBe('ACTIVE')
  })
})
