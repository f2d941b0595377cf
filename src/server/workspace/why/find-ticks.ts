import { scheduleTicks } from '../../../domain/schedules/schedule-ticks.table.ts'
import type { AskedMoment } from '../../../domain/why/moment-asked.ts'
import type { TickRow } from '../../../domain/why/why-schedule.ts'
import { quoteText } from '../../../lib/sql/sql-text.ts'
import { toIso } from '../../../lib/time.ts'
import type { Knowledge } from '../knowledge.ts'
import { newestRows } from './newest-rows.ts'

/** More records of one minute than these are those of ticks every second, and the first answer as well as the others. */
const MAX_RECORDS = 100

/** The record of a moment that says most: what ran before what did not, a moment of its own before a span, the latest decision first. */
export async function tickAt(known: Knowledge, scheduleId: string, { from, to }: AskedMoment): Promise<TickRow | undefined> {
  const moment = (ms: number): string => `${quoteText(toIso(ms))}::timestamptz`
  const [best] = await newestRows(known, scheduleTicks, {
    where: [
      `schedule_id = ${quoteText(scheduleId)}`,
      `scheduled_for <= ${moment(to)}`,
      `coalesce(scheduled_until, scheduled_for) >= ${moment(from)}`,
    ],
    orderBy: `status desc, scheduled_for desc`,
    limit: MAX_RECORDS,
    keyColumns: ['tick_id'],
    keyOf: ({ tick_id }) => [tick_id],
    isAsked: ({ schedule_id, scheduled_for, scheduled_until }) =>
      schedule_id === scheduleId && scheduled_for !== null && scheduled_for <= to && (scheduled_until ?? scheduled_for) >= from,
    comesFirst: saysMore,
  })
  return best
}

/** Records of several ticks that were skipped together, from before a moment to after it, the latest decision first. */
export async function skippedTogether(known: Knowledge, scheduleId: string, at: number): Promise<TickRow[]> {
  const moment = `${quoteText(toIso(at))}::timestamptz`
  return await newestRows(known, scheduleTicks, {
    where: [
      `schedule_id = ${quoteText(scheduleId)}`,
      `status = 'skipped'`,
      `scheduled_for <= ${moment}`,
      `scheduled_until >= ${moment}`,
      `scheduled_until > scheduled_for`,
    ],
    orderBy: 'clock_turn desc nulls last, tick_event_id desc',
    limit: MAX_RECORDS,
    keyColumns: ['tick_id'],
    keyOf: ({ tick_id }) => [tick_id],
    isAsked: (tick) =>
      tick.schedule_id === scheduleId &&
      tick.status === 'skipped' &&
      !isSingle(tick) &&
      (tick.scheduled_for ?? at) <= at &&
      at <= (tick.scheduled_until ?? 0),
    comesFirst: isLater,
  })
}

/** The last tick that somebody asked for after a moment, whichever moment it is for. */
export async function manualTickAfter(known: Knowledge, scheduleId: string, after: number): Promise<TickRow | undefined> {
  const [last] = await newestRows(known, scheduleTicks, {
    where: [
      `schedule_id = ${quoteText(scheduleId)}`,
      `cause = 'manual'`,
      `evaluated_at > ${quoteText(toIso(after))}::timestamptz`,
    ],
    orderBy: 'evaluated_at desc',
    limit: 1,
    keyColumns: ['tick_id'],
    keyOf: ({ tick_id }) => [tick_id],
    isAsked: ({ schedule_id, cause, evaluated_at }) =>
      schedule_id === scheduleId && cause === 'manual' && (evaluated_at ?? 0) > after,
    comesFirst: (a, b) => (a.evaluated_at ?? 0) > (b.evaluated_at ?? 0),
  })
  return last
}

/** True if the record is of one moment, and not of several. */
export const isSingle = ({ scheduled_for, scheduled_until }: TickRow): boolean =>
  scheduled_until === null || scheduled_until === scheduled_for

function saysMore(a: TickRow, b: TickRow): boolean {
  const ran = (tick: TickRow): boolean => tick.status === 'triggered'
  if (ran(a) !== ran(b)) return ran(a)
  // That somebody asked for the moment again says less than what became of its own tick.
  const own = (tick: TickRow): boolean => tick.cause !== 'manual'
  if (own(a) !== own(b)) return own(a)
  if (turnOf(a) === turnOf(b) && isSingle(a) !== isSingle(b)) return isSingle(a)
  return isLater(a, b)
}

const turnOf = ({ clock_turn }: TickRow): number => clock_turn ?? 0

/** True if one was decided after the other: what a clock that was ahead had skipped is decided anew in its time. */
function isLater(a: TickRow, b: TickRow): boolean {
  if (turnOf(a) !== turnOf(b)) return turnOf(a) > turnOf(b)
  return (a.tick_event_id ?? '') > (b.tick_event_id ?? '')
}
