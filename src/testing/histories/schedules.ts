import { ScheduleDefined } from '../../domain/schedules/schedule-defined.event.ts'
import { SchedulePaused } from '../../domain/schedules/schedule-paused.event.ts'
import { ScheduleResumed } from '../../domain/schedules/schedule-resumed.event.ts'
import { ScheduleTicked } from '../../domain/schedules/schedule-ticked.event.ts'
import { TimerFired } from '../../domain/timers/timer-fired.event.ts'
import { TimerRequested } from '../../domain/timers/timer-requested.event.ts'
import { HOUR_MS, SECOND_MS, toIso } from '../../lib/time.ts'
import type { SchedulePlan } from './plan.ts'
import { runLife, SimulatedRun } from './runs.ts'
import type { Actor, World } from './world.ts'
import type { SimulatedWriter } from './writers.ts'

/** A schedule: declared, changed, paused, and evaluated once an hour. A tick and its run request are one segment. */
export function* scheduleLife(world: World, index: number, plan: SchedulePlan): Actor {
  const schedule_id = `schedule-${index}`
  let version = 'none'
  let assets = ['asset0']
  let hour = Math.floor(world.now / HOUR_MS) * HOUR_MS
  for (const [step, { kind, twice, run: runPlan }] of plan.steps.entries()) {
    const request = { schedule_id, request_id: `r${step}`, changed_by: 'ada' }
    if (kind === 'defined') {
      assets = [`asset${step}`]
      const [declared] = world.write(ScheduleDefined, {
        schedule_id,
        schedule_name: `nightly ${step}`,
        cron_expressions: ['0 * * * *'],
        asset_selection: assets,
        definition_hash: `hash-${step}`,
      })
      if (declared === undefined) continue
      version = declared.event_id
      yield [declared]
    } else if (kind === 'paused') yield world.write(SchedulePaused, request)
    else if (kind === 'resumed') yield world.write(ScheduleResumed, request)
    else if (kind === 'alarm') yield* alarm(world, schedule_id, hour + HOUR_MS)
    else {
      hour += HOUR_MS
      const tickId = kind === 'manual' ? `${schedule_id}:manual:${step}` : `${schedule_id}:${hour / SECOND_MS}`
      const run = new SimulatedRun(world, runPlan, `sched:${tickId}`, { type: 'schedule', schedule_id, tick_id: tickId })
      const tick = {
        tick_id: tickId,
        schedule_id,
        scheduled_for: toIso(hour),
        manual: kind === 'manual',
        definition_version: version,
        asset_selection: assets,
        ...(kind === 'skipped'
          ? { status: 'skipped', reason: 'paused' }
          : { status: 'triggered', run_key: run.runKey, request_fingerprint: run.fingerprint }),
      }
      const segment = (writer: SimulatedWriter) => [
        writer.write(ScheduleTicked, tick),
        ...(kind === 'skipped' ? [] : [run.request(writer)]),
      ]
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

function* alarm(world: World, schedule_id: string, at: number): Actor {
  const timer = { timer_type: 'CRON', schedule_id, fire_at: toIso(at) }
  yield world.write(TimerRequested, timer)
  yield world.write(TimerFired, timer)
}
