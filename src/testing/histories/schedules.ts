import { AutomationPaused } from '../../domain/automation/automation-paused.event.ts'
import { AutomationResumed } from '../../domain/automation/automation-resumed.event.ts'
import { ScheduleCaughtUp } from '../../domain/schedules/schedule-caught-up.event.ts'
import { ScheduleDefined } from '../../domain/schedules/schedule-defined.event.ts'
import { SchedulePaused } from '../../domain/schedules/schedule-paused.event.ts'
import { ScheduleRemoved } from '../../domain/schedules/schedule-removed.event.ts'
import { ScheduleResumed } from '../../domain/schedules/schedule-resumed.event.ts'
import { ScheduleTicked } from '../../domain/schedules/schedule-ticked.event.ts'
import { ScheduleTicksSkipped } from '../../domain/schedules/schedule-ticks-skipped.event.ts'
import { HOUR_MS, SECOND_MS, toIso } from '../../lib/time.ts'
import type { SchedulePlan } from './plan.ts'
import { runLife, SimulatedRun } from './runs.ts'
import type { Actor, World } from './world.ts'
import type { SimulatedWriter } from './writers.ts'

/** A schedule: declared, changed, paused, removed, and evaluated once an hour. A tick and its run request are one segment. */
export function* scheduleLife(world: World, index: number, plan: SchedulePlan): Actor {
  const schedule_id = `schedule-${index}`
  let version = 'none'
  let assets = ['asset0']
  let hash = 'none'
  let hour = Math.floor(world.now / HOUR_MS) * HOUR_MS
  for (const [step, { kind, twice, run: runPlan }] of plan.steps.entries()) {
    const by = { request_id: `r${index}-${step}`, changed_by: 'ada' }
    const request = { schedule_id, ...by }
    if (kind === 'defined' || kind === 'declared again') {
      if (kind === 'defined') {
        assets = [`asset${step}`]
        hash = `hash-${step}`
      }
      const [declared] = world.write(ScheduleDefined, {
        schedule_id,
        schedule_name: `nightly ${hash}`,
        cron_expressions: ['0 * * * *'],
        asset_selection: assets,
        catch_up_on_resume: step % 2 === 0,
        has_condition: step % 3 === 1,
        definition_hash: hash,
        request_id: by.request_id,
      })
      if (declared === undefined) continue
      version = declared.event_id
      yield [declared]
    } else if (kind === 'removed')
      yield world.write(ScheduleRemoved, { schedule_id, request_id: by.request_id, removed_by: 'ada' })
    else if (kind === 'paused') yield world.write(SchedulePaused, request)
    else if (kind === 'resumed') yield world.write(ScheduleResumed, request)
    else if (kind === 'all paused') yield world.write(AutomationPaused, by)
    else if (kind === 'all resumed') yield world.write(AutomationResumed, by)
    else if (kind === 'caught up') {
      const paused = world.write(SchedulePaused, request)
      yield paused
      // As the controller says it: up to the change, not up to now.
      for (const { timestamp: until } of paused) yield world.write(ScheduleCaughtUp, { schedule_id, until })
    } else if (kind === 'span') {
      const first = toIso(hour + HOUR_MS)
      hour += 3 * HOUR_MS
      const reason = { reason_code: 'paused', reason: 'paused by ada' }
      yield world.write(ScheduleTicksSkipped, {
        schedule_id,
        first,
        last: toIso(hour),
        tick_count: 3,
        definition_version: version,
        ...reason,
      })
    } else {
      hour += HOUR_MS
      const tickId = kind === 'manual' ? `${schedule_id}:manual:${step}` : `${schedule_id}:${hour / SECOND_MS}`
      const run = new SimulatedRun(world, runPlan, `sched:${tickId}`, { type: 'schedule', schedule_id, tick_id: tickId })
      const tick = {
        tick_id: tickId,
        schedule_id,
        scheduled_for: toIso(hour),
        definition_version: version,
        asset_selection: assets,
        ...(kind === 'manual' && { cause: 'manual', requested_by: 'ada' }),
      }
      const skipped = { ...tick, status: 'skipped', reason: 'paused' }
      const triggered = { ...tick, status: 'triggered', run_key: run.runKey, request_fingerprint: run.fingerprint }
      const segment = (writer: SimulatedWriter) =>
        kind === 'skipped'
          ? [writer.write(ScheduleTicked, skipped)]
          : [writer.write(ScheduleTicked, triggered), run.request(writer)]
      if (kind === 'skipped, then triggered') yield world.write(ScheduleTicked, skipped)
      if (kind !== 'skipped') {
        world.runs.push(run)
        world.spawn(runLife(run))
      }
      yield segment(world.writer())
      // Two controllers evaluated the same hour; the second only repeats the first.
      if (twice) yield segment(world.writer())
    }
  }
}
