import { col } from '../../model/column.ts'
import type { Envelope } from '../../model/envelope.ts'

/** Says when something happened in the order of the record. */
export const orderColumn = (at: string) =>
  col.optional(
    col.timestamp(
      `The same in the order of the record, if a clock before had recorded later times; otherwise null, and \`${at}\` says it.`,
    ),
  )

/**
 * Where a fact of the time `at` stands in the order of the record; null if its time says so. The clock by which the event was received
 * may be behind what is on record, and by as much the fact is later than its time says. A time that a clock has shown before it was set back
 * is no later than the event.
 */
export function orderOf({ behind_ms = 0 }: Pick<Envelope, 'behind_ms'>, receivedAt: number, at = receivedAt): number | null {
  return behind_ms === 0 ? null : Math.min(at, receivedAt) + behind_ms
}
