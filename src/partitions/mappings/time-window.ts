import { assert } from '../../lib/assert.ts'
import { concat, type KeyList } from '../key-list.ts'
import { keyRange } from '../key-range.ts'
import type { PartitionSet } from '../partition-set.ts'
import { type Span, span } from '../spans.ts'
import type { TimeAxis } from '../time/set.ts'
import type { Kind } from './kind.ts'

interface Offsets {
  readonly start_offset: number
  readonly end_offset: number
}

export const timeWindow: Kind<Offsets> = {
  upstream({ start_offset, end_offset }, { downstream, upstream }, position) {
    const axis = axisOf(downstream)
    const wanted = overlapping(
      axisOf(upstream),
      shiftEdge(axis.at(position + start_offset).startMs, start_offset, upstream),
      shiftEdge(axis.at(position + end_offset).endMs, end_offset, upstream),
    )
    const { count } = upstream
    return {
      ranges: [keyRange(upstream, [span(Math.max(wanted.from, 0), Math.min(wanted.to, count - 1))])],
      missing: concat([
        windowsOf(upstream, { from: wanted.from, to: Math.min(wanted.to, -1) }),
        windowsOf(upstream, { from: Math.max(wanted.from, count), to: wanted.to }),
      ]),
    }
  },

  downstream({ start_offset, end_offset }, { downstream, upstream }, position) {
    const { startMs, endMs } = axisOf(upstream).at(position)
    const touched = overlapping(axisOf(downstream), startMs, endMs)
    // Ends reach `end_offset` windows farther than their window, starts begin `start_offset` later: undo both.
    const from = Math.max(touched.from - end_offset, 0)
    const to = Math.min(touched.to - start_offset, downstream.count - 1)
    return [keyRange(downstream, [span(from, to)])]
  },
}

/**
 * An edge that was shifted stops where upstream windows begin or end: before the first day there is no day before to wait
 * for. An edge that was not shifted does not stop, so what lies beyond is required, and missing.
 */
function shiftEdge(ms: number, offset: number, upstream: PartitionSet): number {
  if (offset === 0 || upstream.count === 0) return ms
  const axis = axisOf(upstream)
  return offset < 0 ? Math.max(ms, axis.at(0).startMs) : Math.min(ms, axis.at(upstream.count - 1).endMs)
}

/** The windows that share a moment with this time. Windows may leave gaps, so the one before may have ended already. */
function overlapping(axis: TimeAxis, startMs: number, endMs: number): Span {
  if (startMs >= endMs) return { from: 0, to: -1 }
  const before = axis.startingBefore(startMs)
  const from = axis.at(before).endMs > startMs ? before : before + 1
  return { from, to: axis.startingBefore(endMs - 1) }
}

/** Windows that need not exist. */
function windowsOf(set: PartitionSet, { from, to }: Span): KeyList {
  return { count: Math.max(0, to - from + 1), at: (index) => axisOf(set).at(from + index).key }
}

function axisOf({ axis }: PartitionSet): TimeAxis {
  assert(axis !== undefined, 'only windows of time are mapped as such')
  return axis
}
