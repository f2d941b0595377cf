import { DAY_MS, HOUR_MS, isUtcDay, toMs, utcDay } from '../../lib/time.ts'
import type { ObjectStore } from '../../ports/object-store.ts'
import type { DayRange, Manifest } from '../manifest/manifest.ts'
import type { Paths } from '../paths.ts'
import type { Archives } from './archives.ts'

/** How long a day must be over before it is closed: no clock that works is wrong by so much. */
const CLOSE_AFTER_MS = 2 * HOUR_MS
/** Empty days between two closed ones are closed too, so that their ranges merge. A longer gap means that a clock was wrong. */
const MAX_GAP_DAYS = 31

/** The first moment of a day. */
export const startOfDay = (day: string): number => toMs(`${day}T00:00:00.000Z`)
const dayAfter = (day: string): string => utcDay(startOfDay(day) + DAY_MS)

export function includesDay(ranges: readonly DayRange[], day: string): boolean {
  return ranges.some(([first, last]) => first <= day && day <= last)
}

/** The ranges with these days, in order and as few as possible. */
export function withDays(ranges: readonly DayRange[], days: Iterable<string>): DayRange[] {
  const sorted = [...ranges, ...[...days].map((day): DayRange => [day, day])].sort(([a], [b]) => (a < b ? -1 : 1))
  const merged: [string, string][] = []
  for (const [first, last] of sorted) {
    const before = merged.at(-1)
    if (before === undefined || first > dayAfter(before[1])) merged.push([first, last])
    else if (last > before[1]) before[1] = last
  }
  return merged
}

/** The ranges without these days. */
export function withoutDays(ranges: readonly DayRange[], days: Iterable<string>): readonly DayRange[] {
  const leaving = new Set([...days].filter((day) => includesDay(ranges, day)))
  return leaving.size === 0
    ? ranges
    : withDays(
        [],
        [...daysOf(ranges)].filter((day) => !leaving.has(day)),
      )
}

/** The first day of these ranges that is not in the others. */
export function firstDayOutside(ranges: readonly DayRange[], others: readonly DayRange[]): string | undefined {
  for (const [first, last] of ranges) {
    for (let day = first; day <= last; ) {
      const range = others.find((other) => includesDay([other], day))
      if (range === undefined) return day
      day = dayAfter(range[1])
    }
  }
  return undefined
}

/** Every day of the ranges. */
export function* daysOf(ranges: readonly DayRange[]): Generator<string> {
  for (const [first, last] of ranges) for (let day = first; day <= last; day = dayAfter(day)) yield day
}

export const isSettled = ({ settled_days = [] }: Manifest, day: string): boolean => includesDay(settled_days, day)

/** The first day from this one on in which segments may be written. */
export function openDayFrom({ closed_days = [], settled_days = [] }: Manifest, day: string): string {
  let open = day
  for (;;) {
    const range = [...closed_days, ...settled_days].find(([first, last]) => first <= open && open <= last)
    if (range === undefined) return open
    open = dayAfter(range[1])
  }
}

/**
 * The days that can be closed now: those that have segments and ended long ago by this clock, and short gaps beside them. Nothing is
 * lost if the clock is wrong and a day is closed too early: until the day is over, writers use names of later days.
 */
export function daysToClose(manifest: Manifest, known: Iterable<string>, nowMs: number): string[] {
  const { closed_days = [], settled_days = [] } = manifest
  const isOver = (day: string): boolean => nowMs - startOfDay(day) - DAY_MS > CLOSE_AFTER_MS
  const isOpen = (day: string): boolean => !includesDay(closed_days, day) && !includesDay(settled_days, day)
  const closing = [...known].filter((day) => isOver(day) && isOpen(day))
  if (closing.length === 0) return []
  const ranges = withDays([...closed_days, ...settled_days], closing)
  let before: string | undefined
  for (const [first, last] of ranges) {
    if (before !== undefined && (startOfDay(first) - startOfDay(before)) / DAY_MS - 1 <= MAX_GAP_DAYS) {
      for (let day = dayAfter(before); day < first && isOver(day); day = dayAfter(day)) closing.push(day)
    }
    before = last
  }
  return closing
}

/** The days that the ledger has folders of. */
export async function foldersOfDays(store: ObjectStore, paths: Paths): Promise<string[]> {
  const days: string[] = []
  for await (const name of store.folders(paths.ledger)) if (isUtcDay(name)) days.push(name)
  return days
}

/** How many days are listed at the same time. */
const LISTED_TOGETHER = 16

/**
 * The paths of everything in the ledger outside settled days, in byte order. `known` are days that certainly have a folder: they are
 * listed while the other folders are looked for. Which days are listed never depends on a clock.
 */
export async function* unsettledPaths(
  store: ObjectStore,
  paths: Paths,
  manifest: Manifest,
  known: readonly string[] = [],
): AsyncGenerator<string> {
  if ((manifest.settled_days ?? []).length === 0) {
    for await (const { path } of store.list(paths.ledger)) yield path
    return
  }
  const isWanted = (day: string): boolean => !isSettled(manifest, day)
  const first = known.filter(isWanted)
  const found = new Map<string, string[]>()
  const list = async (day: string): Promise<void> => void found.set(day, await pathsOfDay(store, paths, day))
  const [folders] = await Promise.all([foldersOfDays(store, paths), ...first.map(list)])
  const others = folders.filter((day) => isWanted(day) && !found.has(day))
  for (let start = 0; start < others.length; start += LISTED_TOGETHER) {
    await Promise.all(others.slice(start, start + LISTED_TOGETHER).map(list))
  }
  for (const day of [...found.keys()].sort()) yield* found.get(day) ?? []
}

/**
 * The same with segments that were packed, by the paths that they had. Only settled days are packed; but the manifest in use may be
 * older than that, because newer ones were lost.
 */
export async function* unsettledAndPacked(
  store: ObjectStore,
  paths: Paths,
  manifest: Manifest,
  { known, archives }: { readonly known?: readonly string[]; readonly archives: Archives },
): AsyncGenerator<string> {
  const packed = archives.pathsOutside(manifest.settled_days ?? [])
  // Asked for at once, while the first listing is on its way.
  let next = packed.next()
  next.catch(() => undefined)
  let last = ''
  for await (const path of unsettledPaths(store, paths, manifest, known)) {
    for (let other = await next; !other.done && other.value <= path; other = await next) {
      last = other.value
      yield last
      next = packed.next()
    }
    if (path !== last) yield path
  }
  for (let other = await next; !other.done; other = await packed.next()) yield other.value
}

/** The paths in the folder of one day. */
export async function pathsOfDay(store: ObjectStore, paths: Paths, day: string): Promise<string[]> {
  const found: string[] = []
  for await (const { path } of store.list(paths.day(day))) found.push(path)
  return found
}
