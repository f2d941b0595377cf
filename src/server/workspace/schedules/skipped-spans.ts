import type { TickRow } from '../../../domain/why/why-schedule.ts'
import type { Knowledge } from '../knowledge.ts'
import { isSingle, tickAt } from '../why/find-ticks.ts'

/** Records of ticks that were skipped together, by the ticks among them. Neighbours share a record, which is looked for once. */
export class SkippedSpans {
  readonly #known: Knowledge
  readonly #found: TickRow[] = []

  constructor(known: Knowledge) {
    this.#known = known
  }

  /** The id of the record that has this tick, null if there is none. */
  async idOf(scheduleId: string, tick: number): Promise<string | null> {
    const holds = ({ schedule_id, scheduled_for, scheduled_until }: TickRow): boolean =>
      schedule_id === scheduleId && (scheduled_for ?? tick) <= tick && tick <= (scheduled_until ?? 0)
    const before = this.#found.find(holds)
    if (before !== undefined) return before.tick_id
    const found = await tickAt(this.#known, scheduleId, { from: tick, to: tick })
    if (found === undefined || found.status !== 'skipped' || isSingle(found)) return null
    this.#found.push(found)
    return found.tick_id
  }
}
