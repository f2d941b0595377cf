import { pauseOf } from '../../../domain/schedules/regime.ts'
import type { ScheduleRow } from '../../../domain/schedules/schedule-definitions.table.ts'
import { scheduleState } from '../../../domain/schedules/schedule-state.table.ts'
import { scheduleTicks } from '../../../domain/schedules/schedule-ticks.table.ts'
import { momentAsked } from '../../../domain/why/moment-asked.ts'
import type { WhyAnswer } from '../../../domain/why/reasons.ts'
import {
  type KnownSchedule,
  latestDue,
  type ManualTick,
  type MomentOfSchedule,
  type RunOfTick,
  runBehind,
  tickWithin,
  whySchedule,
} from '../../../domain/why/why-schedule.ts'
import { type Knowledge, lookup } from '../knowledge.ts'
import { isSingle, manualTickAfter, tickAt } from './find-ticks.ts'
import { requestOf, stateOfRun } from './origins.ts'

/** Why a schedule ran or did not, at a moment or when it was last due. */
export async function whyOfSchedule(
  known: Knowledge,
  definition: Readonly<ScheduleRow>,
  { at, isOn = true, outage }: { at?: string | undefined; isOn?: boolean | undefined; outage: () => string | undefined },
): Promise<WhyAnswer> {
  const rows = known.rows()
  const state = rows.hot(scheduleState).get(definition.schedule_id)
  const schedule = { definition, state, pause: pauseOf(rows, state), now: known.now(), isOn, outage: outage() }
  return whySchedule(schedule, await momentOf(known, schedule, at))
}

async function momentOf(known: Knowledge, schedule: KnownSchedule, asked: string | undefined): Promise<MomentOfSchedule> {
  const { definition, now } = schedule
  const { schedule_id, timezone } = definition
  const due = latestDue(schedule)
  const manual = asked === undefined ? await manualAfter(known, schedule_id, due ?? 0) : undefined
  if (asked === undefined && due === undefined) return { at: undefined, tick: undefined, run: undefined, manual }
  const span = asked === undefined ? { from: due ?? now, to: due ?? now } : momentAsked(asked, timezone, now)
  const exact = tickWithin(definition, span)
  const tick = (await tickAt(known, schedule_id, { from: exact, to: exact })) ?? (await tickAt(known, schedule_id, span))
  const own = tick === undefined || isSingle(tick) ? tick?.scheduled_for : undefined
  const run = tick && runBehind(tick)
  return { at: own ?? exact, tick, run: run === undefined ? undefined : await runOfTick(known, run), manual }
}

async function manualAfter(known: Knowledge, scheduleId: string, after: number): Promise<ManualTick | undefined> {
  const tick = await manualTickAfter(known, scheduleId, after)
  if (tick?.evaluated_at == null) return undefined
  const run = tick.run_id === null ? undefined : await runOfTick(known, tick.run_id)
  return { at: tick.evaluated_at, by: tick.requested_by, run }
}

async function runOfTick(known: Knowledge, run_id: string): Promise<RunOfTick> {
  const source = (await requestOf(known, run_id))?.source
  const tick = source?.type === 'schedule' ? await lookup(known, scheduleTicks, source.tick_id) : undefined
  return { run_id, state: await stateOfRun(known, run_id), scheduled_for: tick?.scheduled_for ?? null }
}
