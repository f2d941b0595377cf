import { ServoError } from '../lib/error.ts'
import { type DimensionDefinition, isTime, timeDefinition } from '../partitions/definition.ts'
import { readKey, writeKey } from '../partitions/key.ts'
import { type TimeWindows, timeWindows } from '../partitions/time-windows.ts'
import type { AnyPartitions, PartitionData, Window } from './partitions.ts'
import { issuesText } from './standard-schema.ts'

/** A partition as dispatches and requests carry it: canonical text, and the values of its dimensions when it has several. */
export interface PartitionText {
  readonly key: string
  readonly values?: Readonly<Record<string, string>> | null | undefined
}

/** What the body of an asset is told about its partition. */
export interface OpenPartition {
  readonly key: unknown
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

/** The key and window as code sees them. The key is checked: a worker may be told anything. */
export function openPartition(of: AnyPartitions, text: PartitionText): OpenPartition {
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
