import { zoneNamed } from '../../cron/zone-clocks.ts'
import { ServoError } from '../../lib/error.ts'
import { type DimensionDefinition, isTime, timeDefinition } from '../../partitions/definition.ts'
import { rangeKey, readKey, writeKey } from '../../partitions/key.ts'
import { type TimeWindows, timeWindows } from '../../partitions/time/windows.ts'
import { issuesText } from '../standard-schema.ts'
import type { AnyPartitions, PartitionData, Window } from './partitions.ts'
import { isRanges } from './ranges.ts'

/** A partition as dispatches and requests carry it: canonical text, and the values of its dimensions when it has several. */
export interface PartitionText {
  readonly key: string
  readonly values?: Readonly<Record<string, string>> | null | undefined
  /** All of a range. */
  readonly keys?: readonly string[] | null | undefined
}

/** The partition in the context of a body. */
export interface OpenPartition {
  readonly key: unknown
  /** Of an asset that is made in ranges. */
  readonly keys?: readonly unknown[]
  readonly window: WindowsOfKey
}

/** The window of a partition; of several dimensions, the window in each that is time. */
export type WindowsOfKey = Window | Readonly<Record<string, Window | undefined>> | undefined

/** The canonical text of a key as code has it: `2025-01-15`, or `day=2025-01-15,region=eu`. */
export function partitionText(key: unknown): PartitionText {
  if (typeof key === 'string') return { key }
  const values = key as Readonly<Record<string, string>>
  return { key: writeKey(values), values }
}

/** The values of the dimensions in a canonical text. */
export const valuesOfDimensions = readKey

/** The same of a range, as code has its keys. */
export function rangeText(keys: readonly unknown[]): PartitionText {
  const texts = keys.map((key) => partitionText(key).key)
  return { key: rangeKey(texts[0] ?? '', texts.at(-1) ?? '', typeof keys[0] !== 'string'), keys: texts }
}

/** The key and window as code sees them, of a range all keys. They are checked, because an envelope may contain anything. */
export function openPartition(partitions: AnyPartitions, text: PartitionText): OpenPartition {
  if (!isRanges(partitions)) return openOne(partitions, text)
  const all = (text.keys ?? [text.key]).map((key) => openOne(partitions, { key }))
  return { key: text.key, keys: all.map(({ key }) => key), window: spanning(all[0]?.window, all.at(-1)?.window) }
}

/** From the start of one window to the end of another; of several dimensions, in each. */
function spanning(first: WindowsOfKey, last: WindowsOfKey): WindowsOfKey {
  if (first === undefined || last === undefined) return undefined
  if (isWindow(first) || isWindow(last)) return isWindow(first) && isWindow(last) ? spanOf(first, last) : undefined
  return Object.fromEntries(Object.entries(first).map(([name, window]) => [name, spanOf(window, last[name])]))
}

const isWindow = (windows: NonNullable<WindowsOfKey>): windows is Window => windows.start instanceof Date

const spanOf = (first: Window | undefined, last: Window | undefined): Window | undefined =>
  first && last && { start: first.start, end: last.end }

function openOne(partitions: AnyPartitions, text: PartitionText): OpenPartition {
  const key = partitions.data.type === 'multi' ? (text.values ?? valuesOfDimensions(text.key)) : text.key
  const result = partitions.key.safeParse(key)
  if (!result.success)
    throw new ServoError('invalid', 'bad_partition', `${text.key} is not a partition: ${issuesText(result.error.issues)}`, {
      hint: 'Request a partition that the asset has.',
    })
  return { key, window: windowsOf(partitions.data, key) }
}

function windowsOf(data: PartitionData, key: string | Readonly<Record<string, string>>): WindowsOfKey {
  if (data.type !== 'multi') return typeof key === 'string' ? windowOf(data, key) : undefined
  const values = typeof key === 'string' ? readKey(key) : key
  return Object.fromEntries(
    Object.entries(data.dimensions).map(([name, dimension]) => [name, windowOf(dimension, values[name] ?? '')]),
  )
}

const known = new WeakMap<DimensionDefinition, TimeWindows>()

function windowOf(definition: DimensionDefinition, key: string): Window | undefined {
  if (!isTime(definition)) return undefined
  let windows = known.get(definition)
  if (windows === undefined) {
    windows = timeWindows(timeDefinition(definition))
    known.set(definition, windows)
  }
  const position = windows.positionOf(key)
  if (position === undefined) return undefined
  const { startMs, endMs } = windows.at(position)
  return { start: new Date(startMs), end: new Date(endMs) }
}

/**
 * The window of a partition as programs read it: ISO 8601 with the offset that the zone of the partition has then, so that its date is
 * the date of the partition. Of several dimensions it is the window of the only one that is time.
 */
export function windowText({ data }: AnyPartitions, { window }: OpenPartition): { start: string; end: string } | undefined {
  if (window === undefined) return undefined
  if (data.type !== 'multi') return isTime(data) && isWindow(window) ? textOf(window, data.timezone) : undefined
  const times = Object.entries(data.dimensions).filter(([, dimension]) => isTime(dimension))
  const [[name, definition] = []] = times
  if (times.length !== 1 || name === undefined || !isTime(definition) || isWindow(window)) return undefined
  const own = window[name]
  return own && textOf(own, definition.timezone)
}

function textOf({ start, end }: Window, timezone: string): { start: string; end: string } {
  const zone = zoneNamed(timezone)
  return { start: zone.textAt(start.getTime()), end: zone.textAt(end.getTime()) }
}
