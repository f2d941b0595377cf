import { isCounted, LAST_YEAR } from '../../cron/wall-times.ts'
import { type Zone, zoneNamed } from '../../cron/zone-clocks.ts'
import { badWindow, type CheckedDefinition, checkDefinition, type TimeDefinition } from './definition.ts'
import { writeOffset } from './format.ts'

export type { TimeDefinition } from './definition.ts'

export interface TimeWindow {
  readonly position: number
  readonly key: string
  readonly startMs: number
  readonly endMs: number
}

/**
 * All windows of a definition, in order and without end: `end` limits which exist and which keys are known, not `at`.
 * Nothing is enumerated: an answer costs a few binary searches, and once per year since the start some 80 offsets of its zone.
 */
export interface TimeWindows {
  readonly zone: string
  /** Windows that exist at `nowMs`: closed ones, plus `endOffset` more (or fewer), never beyond `end`. */
  count(nowMs: number): number
  /** By position from the first window, 0; also for windows that do not exist yet. Cheap at any position. */
  at(position: number): TimeWindow
  /** The same; undefined beyond the years that are counted. */
  find(position: number): TimeWindow | undefined
  /** Keys of positions `from` up to, and without, `to`, which must exist; a million in a row cost less than as many answers. */
  keys(from: number, to: number): IterableIterator<string>
  /** Position of the last window that is counted, in the year 2199. */
  last(): number
  /** Position of the window with this key; undefined if no window, past or future, has it. */
  positionOf(key: string): number | undefined
  /** Position of the last window that starts at or before this instant; -1 before the first. */
  startingBefore(ms: number): number
}

/** The zone is an argument for tests that count its calls. */
export function timeWindows(definition: TimeDefinition, zone: Zone = zoneNamed(definition.timezone)): TimeWindows {
  return new Windows(checkDefinition(definition, zone))
}

/**
 * A key has the time at which its window was meant to begin, to the precision of its format. Ticks nearby that do not match: a tick
 * that clocks jumped over, and the first of two times they show.
 */
const NEARBY = 3

/** Plans request the same days for many assets, one after the other: about a year of days is cached. */
const REMEMBERED = 1_000

class Windows implements TimeWindows {
  readonly zone: string
  private readonly checked: CheckedDefinition
  private readonly first: number
  /** How many windows end at `end` or before. */
  private readonly total: number
  private readonly recent = new Map<number, TimeWindow>()
  private readonly byKey = new Map<string, number>()
  private latest = -1
  private inOrder = false

  constructor(checked: CheckedDefinition) {
    this.checked = checked
    this.zone = checked.zone.name
    this.first = checked.starts.rank(checked.startMs)
    this.total = checked.endMs === undefined ? Number.POSITIVE_INFINITY : Math.max(0, this.closed(checked.endMs))
  }

  count(nowMs: number): number {
    const count = Math.max(0, Math.min(this.closed(nowMs) + this.checked.endOffset, this.total))
    const isBeyond = this.checked.endOffset > 0 && count > 0 && this.find(count - 1) === undefined
    return isBeyond ? this.last() + 1 : count
  }

  last(): number {
    let position = this.startingBefore(Number.MAX_SAFE_INTEGER)
    // It may have no end that is counted.
    while (position > 0 && this.find(position) === undefined) position--
    return position
  }

  at(position: number): TimeWindow {
    const window = Number.isSafeInteger(position) && position >= 0 ? this.find(position) : undefined
    if (window !== undefined) return window
    const hint = `Positions are whole numbers from 0 on, up to the last window before the year ${LAST_YEAR + 1}.`
    throw badWindow(`there is no window at position ${position}`, hint, { position })
  }

  *keys(from: number, to: number): IterableIterator<string> {
    const { starts } = this.checked
    let startMs = from < to ? this.at(from).startMs : undefined
    for (let position = from; startMs !== undefined && position < to; position++) {
      yield this.keyOf(startMs)
      startMs = starts.next(startMs + 1)
    }
  }

  positionOf(key: string): number | undefined {
    const known = this.byKey.get(key) ?? this.nextIf(key)
    if (known !== undefined) return known < this.total ? known : undefined
    const { format, zone, starts, everyHour } = this.checked
    const shown = format.read(key)
    if (shown === undefined || !isCounted(shown.wallMs)) return undefined
    const { wallMs, offsetMs } = shown
    const instant = offsetMs === undefined ? zone.instantOf(wallMs, everyHour ? 'first' : 'last') : wallMs - offsetMs
    const near = Math.max(0, starts.rank(instant) - this.first)
    for (let position = near; position < Math.min(near + NEARBY, this.total); position++) {
      if (this.find(position)?.key === key) return position
    }
    return undefined
  }

  startingBefore(ms: number): number {
    return Math.max(-1, this.checked.starts.rank(Math.floor(ms) + 1) - this.first - 1)
  }

  /** The window after the last one requested, if it has this key: most callers go through keys in order. */
  private nextIf(key: string): number | undefined {
    if (!this.inOrder) return undefined
    const next = this.find(this.latest + 1)
    if (next?.key === key) return next.position
    this.inOrder = false
    return undefined
  }

  find(position: number): TimeWindow | undefined {
    const known = this.recent.get(position)
    const window = known ?? this.make(position)
    if (window === undefined) return undefined
    if (position === this.latest + 1) this.inOrder = true
    this.latest = position
    if (known === undefined) this.remember(window)
    return window
  }

  private make(position: number): TimeWindow | undefined {
    const { starts, bounds } = this.checked
    // Where none is left out, a window begins where the one before ends.
    const before = starts === bounds ? this.recent.get(position - 1)?.endMs : undefined
    const startMs = before ?? starts.at(this.first + position)
    const endMs = startMs === undefined ? undefined : bounds.next(startMs + 1)
    if (startMs === undefined || endMs === undefined) return undefined
    return { position, key: this.keyOf(startMs), startMs, endMs }
  }

  private remember(window: TimeWindow): void {
    if (this.recent.size >= REMEMBERED) {
      this.recent.clear()
      this.byKey.clear()
    }
    this.recent.set(window.position, window)
    this.byKey.set(window.key, window.position)
  }

  /** How many windows have closed, counted from the first; negative when windows before it would still have to close. */
  private closed(nowMs: number): number {
    const bound = this.checked.bounds.previous(nowMs)
    return bound === undefined ? Number.NEGATIVE_INFINITY : this.checked.starts.rank(bound) - this.first
  }

  /** A window is named by the time at which it was meant to begin: where clocks jump over that time, it begins later. */
  private keyOf(startMs: number): string {
    const { zone, format, bounds, everyHour } = this.checked
    const { fromMs, offsetMs, beforeMs } = zone.stretch(startMs)
    const key = format.write(bounds.meantFor(startMs), offsetMs)
    const isShownTwice = everyHour && startMs + offsetMs < fromMs + beforeMs
    return isShownTwice && !format.writesOffset ? key + writeOffset(offsetMs) : key
  }
}
