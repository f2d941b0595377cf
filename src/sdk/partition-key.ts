import { ServoError } from '../lib/error.ts'
import type { AnyPartitions, PartitionData, Window } from './partitions.ts'
import { issuesText } from './standard-schema.ts'
import { windowOf } from './zone.ts'

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
  const names = Object.keys(values).sort()
  return { key: names.map((name) => `${encodeURIComponent(name)}=${encodeURIComponent(values[name] ?? '')}`).join(','), values }
}

/** The values of the dimensions in a canonical text. */
export function dimensionsOf(text: string): Record<string, string> {
  return Object.fromEntries(text.split(',').map((part) => part.split('=').map(decodeURIComponent)))
}

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
  if (typeof key === 'string') return windowOf(data, key)
  if (data.type !== 'multi') return undefined
  return Object.fromEntries(
    Object.entries(data.dimensions).map(([name, dimension]) => [name, windowOf(dimension, key[name] ?? '')]),
  )
}
