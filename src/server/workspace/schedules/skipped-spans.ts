import { readableCadence } from '../../../domain/schedules/moments/cadence-if-any.ts'
import type { TickRow } from '../../../domain/why/why-schedule.ts'
import type { Knowledge } from '../knowledge.ts'
import { skippedTogether } from '../why/find-ticks.ts'

/** Records of ticks that were skipped together, by the ticks among them. Neighbours share a record, which is looked for once. */
export class SkippedSpans {
  readonly #known: Knowledge
  #found: readonly TickRow[] = []

  constructor(known: Knowledge) {
    this.#known = known
  }

  /** The id of the record that has this tick, null if there is none. */
  async idOf(scheduleId: string, tick: number): Promise<string | null> {
    const holds = (span: TickRow): boolean => span.schedule_id === scheduleId && isTickOf(span, tick)
    if (!this.#found.some(holds)) this.#found = await skippedTogether(this.#known, scheduleId, tick)
    return this.#found.find(holds)?.tick_id ?? null
  }
}

/** True if the record stands for this tick: a cron that the schedule got later may tick at other moments in between. */
function isTickOf({ scheduled_for, scheduled_until, cron_expressions, timezone }: TickRow, tick: number): boolean {
  if ((scheduled_for ?? tick) > tick || tick > (scheduled_until ?? 0) || cron_expressions === null || timezone === null)
    return false
  return readableCadence({ cron_expressions, timezone, start_at: null, end_at: null })?.has(tick) === true
}
