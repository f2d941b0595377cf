import { z } from 'zod'
import { type Cron, parseCron } from '../../cron/parse-cron.ts'
import { nextTick, previousTick } from '../../cron/ticks.ts'
import { itemAt } from '../../lib/collections/item-at.ts'
import { positionsIn } from '../../partitions/key-range.ts'
import type { PartitionSet } from '../../partitions/partition-set.ts'

const policy = z.discriminatedUnion('type', [
  z.object({ type: z.literal('within'), within_ms: z.number() }),
  z.object({ type: z.literal('by'), by: z.string().regex(/^\d{2}:\d{2}$/), timezone: z.string() }),
])

/** The time since which a partition is not fresh; undefined while it is. */
export interface FreshnessRule {
  /** `madeAt` is 0 for what was never made. */
  staleSince(position: number, madeAt: number): number | undefined
}

/**
 * The freshness policy of an asset. A window of time is made once, after it closed: it does not age, but it is late when it is
 * missing for too long after its end, or at the next deadline. Anything else must be made again and again.
 */
export function freshnessOf(said: unknown, set: PartitionSet, nowMs: number): FreshnessRule | undefined {
  const { success, data } = policy.safeParse(said)
  if (!success) return undefined
  const deadline = data.type === 'within' ? (ms: number) => ms + data.within_ms : nextTime(data.by, data.timezone)
  const endOf = windowEnds(set)
  if (endOf !== undefined) {
    return {
      staleSince(position, madeAt) {
        if (madeAt > 0) return undefined
        const due = deadline(endOf(position))
        return due < nowMs ? due : undefined
      },
    }
  }
  if (data.type === 'within') {
    return { staleSince: (_, madeAt) => (madeAt > 0 && deadline(madeAt) < nowMs ? deadline(madeAt) : undefined) }
  }
  // At each deadline the partition must have been made after the deadline before.
  const cron = daily(data.by)
  const last = previousTick(cron, data.timezone, nowMs, { inclusive: true })
  const before = last === undefined ? undefined : previousTick(cron, data.timezone, last)
  return {
    staleSince: (_, madeAt) => (madeAt > 0 && before !== undefined && madeAt <= before ? last : undefined),
  }
}

function daily(time: string): Cron {
  const [hour, minute] = time.split(':').map(Number)
  return parseCron(`${minute} ${hour} * * *`)
}

function nextTime(by: string, timezone: string): (ms: number) => number {
  const cron = daily(by)
  return (ms) => nextTick(cron, timezone, ms, { inclusive: true }) ?? Number.POSITIVE_INFINITY
}

/** When the window of a partition ends, if it has one. */
function windowEnds(set: PartitionSet): ((position: number) => number) | undefined {
  const { axis } = set
  if (axis !== undefined) return (position) => axis.at(position).endMs
  const place = set.dimensions.findIndex((dimension) => dimension.set.axis !== undefined)
  const inner = set.dimensions[place]?.set.axis
  return inner && ((position) => inner.at(itemAt(positionsIn(set, position), place)).endMs)
}
