import { DAY_MS, toIso } from '../../lib/time.ts'
import type { TimePartitions } from '../definition.ts'
import { within } from '../key-list.ts'
import type { KeyProblem, PartitionSet } from '../partition-set.ts'
import type { TimeDefinition, TimeWindow, TimeWindows } from './windows.ts'

/**
 * The windows of a definition as if they had neither beginning nor end: mappings request the month before the first, to report
 * that it is missing. Position 0 is the first window that the definition has.
 */
export interface TimeAxis {
  readonly zone: string
  /** Beyond the centuries that are counted, the outermost window: a mapping that takes all that was before has a large offset. */
  at(position: number): TimeWindow
  /** The last window that starts at or before an instant. */
  startingBefore(ms: number): number
}

/** `2025-01-15T23:00Z`, with seconds only if there are any. */
const toMinute = (ms: number): string => toIso(ms).replace(/(?::00)?\.000Z$/, 'Z')

/** Cron expressions are counted from 1900 on; what was before needs no key. */
const EARLIEST_MS = Date.UTC(1902, 0)

type MakeWindows = (definition: TimeDefinition) => TimeWindows

export function timeSet(definition: TimePartitions, time: TimeDefinition, make: MakeWindows, nowMs: number): PartitionSet {
  const windows = make(time)
  const count = Math.max(0, windows.count(nowMs))
  const axis = timeAxis(time, make, windows)
  const positionOf = (key: string): number | undefined => {
    const position = windows.positionOf(key)
    return position !== undefined && position < count ? position : undefined
  }
  const set: PartitionSet = {
    definition,
    count,
    at: (position) => windows.at(within(position, count)).key,
    positionOf,
    has: (key) => positionOf(key) !== undefined,
    keys: (from = 0, to = count) => windows.keys(Math.max(0, from), Math.min(to, count)),
    problemOf: (key) => (set.has(key) ? undefined : timeProblem(key)),
    dimensions: [],
    axis,
  }

  /** A window exists once the one `endOffset` before it has closed; undefined when that is beyond all years. */
  function existsFrom(position: number): number | undefined {
    const closing = position - (time.endOffset ?? 0)
    return (closing < 0 ? axis.at(closing) : windows.find(closing))?.endMs
  }

  const range = (): string => (count === 1 ? set.at(0) : `${set.at(0)} to ${set.at(count - 1)}`)

  function existing(): string {
    if (count === 1) return `its only partition is ${set.at(0)}`
    if (count > 0) return `its partitions run from ${set.at(0)} to ${set.at(count - 1)}`
    const from = existsFrom(0)
    if (from === undefined) return 'none ever exists'
    if (windows.count(from) === 0) return 'its definition ends before its first window does'
    return `none exists yet; the first, ${windows.at(0).key}, exists from ${toMinute(from)}`
  }

  function timeProblem(key: string): KeyProblem {
    const later = windows.positionOf(key)
    if (later !== undefined) {
      const from = existsFrom(later)
      const when = from === undefined ? 'never exists' : `does not exist before ${toMinute(from)}`
      const others = count > 0 ? `Existing: ${range()}` : existing().replace(/^./, (letter) => letter.toUpperCase())
      return { code: 'not_closed', message: `Partition ${key} ${when}. ${others}` }
    }
    if (isOfAnotherTime(time, make, key)) return { code: 'outside_range', message: `no partition ${key}; ${existing()}` }
    if (key.includes('='))
      return {
        code: 'other_kind',
        message: `${key} names dimensions, but these partitions are ${definition.type} windows; ${existing()}`,
      }
    return { code: 'unknown_key', message: `no partition ${key || '""'}; ${existing()}` }
  }

  return set
}

/** True if a window would have this key if the definition began earlier and had no end. */
function isOfAnotherTime(time: TimeDefinition, make: MakeWindows, key: string): boolean {
  const { end: _, ...endless } = time
  return make({ ...endless, start: EARLIEST_MS }).positionOf(key) !== undefined
}

function timeAxis(time: TimeDefinition, make: MakeWindows, windows: TimeWindows): TimeAxis {
  /** Windows that begin before ours, and where our first is among them; made at the first question about one. */
  let early: { readonly windows: TimeWindows; readonly first: number; readonly startMs: number } | undefined

  /** Extends the early windows. False if they cannot begin earlier. */
  function reachFarther(): boolean {
    const firstMs = windows.at(0).startMs
    const reachMs = early === undefined ? 31 * DAY_MS : 4 * (firstMs - early.startMs)
    const startMs = Math.max(firstMs - reachMs, EARLIEST_MS)
    if (startMs === early?.startMs || startMs >= firstMs) return false
    const { end: _, ...endless } = time
    const earlier = make({ ...endless, start: startMs })
    early = { windows: earlier, first: earlier.startingBefore(firstMs), startMs }
    return true
  }

  /** The early window at the position that `ask` answers, which is negative as long as they begin too late for it. */
  function earlier(ask: (windows: TimeWindows, first: number) => number): TimeWindow {
    for (let isMore = true; isMore; isMore = reachFarther()) {
      const position = early === undefined ? -1 : ask(early.windows, early.first)
      if (early !== undefined && position >= 0) return { ...early.windows.at(position), position: position - early.first }
    }
    const outermost = early ?? { windows, first: 0 }
    return { ...outermost.windows.at(0), position: -outermost.first }
  }

  return {
    zone: windows.zone,
    at: (position) =>
      position < 0 ? earlier((_, first) => first + position) : (windows.find(position) ?? windows.at(windows.last())),
    startingBefore(ms) {
      const position = windows.startingBefore(ms)
      return position >= 0 ? position : earlier((windows) => windows.startingBefore(ms)).position
    },
  }
}
