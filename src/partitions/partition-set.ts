import { ServoError } from '../lib/error.ts'
import type { PartitionDefinition } from './definition.ts'
import { isTime, timeDefinition } from './definition.ts'
import { type KeyList, keysOf } from './key-list.ts'
import { listSet } from './list-set.ts'
import { meantBy } from './meant-keys.ts'
import { productSet } from './product-set.ts'
import { type TimeAxis, timeSet } from './time/set.ts'
import { type TimeDefinition, type TimeWindows, timeWindows } from './time/windows.ts'

/**
 * The partitions of a definition that exist at one moment, in a fixed order. Everything is arithmetic on positions: the last
 * of a million costs as much as the first, and nothing is enumerated.
 */
export interface PartitionSet extends KeyList {
  /** Undefined for an asset without partitions: one part, whose key is the empty text. */
  readonly definition: PartitionDefinition | undefined
  readonly count: number
  /** The canonical key at a position from 0 to `count - 1`. */
  at(position: number): string
  positionOf(key: string): number | undefined
  has(key: string): boolean
  /** Positions `from` up to, and without, `to`, as `slice` takes them. */
  keys(from?: number, to?: number): IterableIterator<string>
  /** Why a key does not exist, and what does; undefined when it exists. */
  problemOf(key: string): KeyProblem | undefined
  /** Sorted by name; the last varies fastest. Empty when there is one dimension without a name. */
  readonly dimensions: readonly Dimension[]
  /** Where the windows are, if these are windows of time. */
  readonly axis?: TimeAxis
}

export interface Dimension {
  readonly name: string
  readonly set: PartitionSet
}

export interface KeyProblem {
  readonly code: 'unknown_key' | 'outside_range' | 'not_closed' | 'other_kind'
  readonly message: string
}

export interface SetOptions {
  readonly nowMs: number
  /** The keys of a dynamic set, in the order in which they were added. */
  readonly dynamicKeys: (name: string) => readonly string[]
  /** Returns the windows of a definition; a frequent caller keeps them. */
  readonly windows?: (definition: TimeDefinition) => TimeWindows
}

export function partitionSet(definition: PartitionDefinition | undefined, options: SetOptions): PartitionSet {
  const { nowMs, dynamicKeys, windows = timeWindows } = options
  if (definition === undefined) return unpartitioned
  if (isTime(definition)) return timeSet(definition, timeDefinition(definition), windows, nowMs)
  if (definition.type === 'keys') return listSet(definition, definition.keys, 'the definition has')
  if (definition.type === 'dynamic') return listSet(definition, dynamicKeys(definition.name), `${definition.name} has`)
  const dimensions = Object.entries(definition.dimensions).map(([name, dimension]) => ({
    name,
    set: partitionSet(dimension, options),
  }))
  return productSet(definition, dimensions)
}

/** What is wrong with a key, said of the asset whose partitions these are. */
export const saidOf = (assetKey: string, problem: string): string =>
  /^no (time )?partitions?\b/.test(problem) ? `${assetKey} has ${problem}` : `${assetKey}: ${problem}`

/** The position of a key that must exist. */
export function positionIn(set: PartitionSet, key: string): number {
  const position = set.positionOf(key)
  if (position !== undefined) return position
  throw new ServoError('not_found', 'no_such_partition', set.problemOf(key)?.message ?? `no partition ${key}`, {
    hint: meantBy(set, key) ?? 'Request a partition that exists.',
    facts: { partition_key: key },
  })
}

const unpartitioned: PartitionSet = {
  definition: undefined,
  count: 1,
  at: () => '',
  positionOf: (key) => (key === '' ? 0 : undefined),
  has: (key) => key === '',
  keys: (from, to) => keysOf(unpartitioned, from, to),
  problemOf: (key) =>
    key === '' ? undefined : { code: 'other_kind', message: `no partition ${key}; the asset has no partitions` },
  dimensions: [],
}
