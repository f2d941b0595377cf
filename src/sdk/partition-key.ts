import { ServoError } from '../lib/error.ts'
import { type DimensionDefinition, isTime, timeDefinition } from '../partitions/definition.ts'
import { rangeKey, readKey, writeKey } from '../partitions/key.ts'
import { type TimeWindows, timeWindows } from '../partitions/time/windows.ts'
import { isRanges } from './attempt/ranges.ts'
import type { AnyPartitions, PartitionData, Window } from './partitions.ts'
import { issuesText } from './standard-schema.ts'

/** A partition as dispatches and requests carry it: canonical text, and the values of its dimensions when it has several. */
export interface PartitionText {
  readonly key: string
  readonly values?: Readonly<Record<string, string>> | null | undefined
  /** All of a range. */
  readonly keys?: readonly string[] | null | undefined
}

/** What the body of an asset is told about its partition. */
export interface OpenPartition {
  readonly key: unknown
  /** Of an asset that is made in ranges. */
  readonly keys?: readonly unknown[]
  readonly window: unknown
}

/** The canonical text of a key as code has it: `2025-01-15`, or `day=2025-01-15,region=eu`. */
export function partitionText(key: unknown): PartitionText {
  if (typeof key === 'string') return { key }
  const values = key as Readonly<Record<string, string>>
  return { key: writeKey(values), values }
}

/** The values of the dimensions in a canonical text. */
export const dimensionsOf = readKey

/** The same of a range, as code has its keys. */
export function rangeText(keys: readonly unknown[]): PartitionText {
  const texts = keys.map((key) => partitionText(key).key)
  return { key: rangeKey(texts[0] ?? '', texts.at(-1) ?? '', typeof keys[0] !== 'string'), keys: texts }
}

/** The key and window as code sees them, of a range all keys. They are checked: a worker may be told anything. */
export function openPartition(of: AnyPartitions, text: PartitionText): OpenPartition {
  if (!isRanges(of)) return openOne(of, text)
  const all = (text.keys ?? [text.key]).map((key) => openOne(of, { key }))
  const [first, last] = [all[0]?.window, all.at(-1)?.window] as (Spanned | undefined)[]
  return { key: text.key, keys: all.map(({ key }) => key), window: spanning(first, last) }
}

type Spanned = Window | Readonly<Record<string, Window | undefined>>

/** From the start of one window to the end of another; of several dimensions, in each. */
function spanning(first: Spanned | undefined, last: Spanned | undefined): Spanned | undefined {
  if (first === undefined || last === undefined) return undefined
  if (first.start instanceof Date) return { start: first.start, end: (last as Window).end }
  const names = Object.keys(first)
  const between = (name: string) => spanning((first as never)[name], (last as never)[name]) as Window | undefined
  return Object.fromEntries(names.map((name) => [name, between(name)]))
}

function openOne(of: AnyPartitions, text: PartitionText): OpenPartition {
  const key = of.data.type === 'multi' ? (text.values ?? dimensionsOf(text.key)) : text.key
  const result = of.key.safeParse(key)
  if (!result.success)
    throw new ServoError('invalid', 'bad_partition', `${text.key} is no partition: ${issuesText(result.error.issues)}`, {
      hint: 'Ask for a partition that the definition of the asset has.',
    })
  return { key, window: windowsOf(of.data, key) }
}

function windowsOf(data: PartitionData, key: string | Readonly<Record<string, string>>): Window | object | undefined {
  if (data.type !== 'multi') return windowOf(data, key as string)
  const values = key as Readonly<Record<string, string>>
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
  const { startMs, endMs } = windows.at(windows.positionOf(key) as number)
  return { start: new Date(startMs), end: new Date(endMs) }
}
