import { z } from 'zod'
import { ServoError } from '../lib/error.ts'
import { canonicalJson } from '../lib/json.ts'
import { keyOfDimensions, type PartitionValues } from './key.ts'
import { timeUnits, type UnitOptions, unitDefinition } from './time/units.ts'
import type { TimeDefinition } from './time/windows.ts'

/** A moment: the key of a window, a date and time in the zone of the definition, or milliseconds. */
const moment = z.union([z.string().min(1).max(64), z.number()])
const key = z.string().min(1)
const place = (least: number, most: number) => z.number().int().min(least).max(most).nullish()

/** The words of `UnitOptions`, and what they mean there. */
const timePartitions = z.strictObject({
  type: z.enum(timeUnits),
  start: moment,
  end: moment.nullish(),
  timezone: z.string().min(1).max(64).default('UTC'),
  end_offset: z.number().int().min(-10_000).max(10_000).nullish(),
  format: z.string().min(1).max(100).nullish(),
  exclusions: z.array(z.string().min(1).max(255)).max(1_000).nullish(),
  every: place(1, 60),
  minute: place(0, 59),
  hour: place(0, 23),
  weekday: place(0, 6),
  day: place(1, 31),
  month: place(1, 12),
  cron: z.string().min(1).max(255).nullish(),
})
const listedPartitions = z.strictObject({
  type: z.literal('keys'),
  keys: z.array(key).refine((keys) => new Set(keys).size === keys.length, 'must have every key once'),
})
const dynamicPartitions = z.strictObject({ type: z.literal('dynamic'), name: z.string().min(1) })
const dimension = z.discriminatedUnion('type', [timePartitions, listedPartitions, dynamicPartitions])

const dimensionName = z
  .string()
  .min(1)
  .refine((name) => name !== '__proto__' && name.isWellFormed(), 'must be a plain name')

/**
 * The partitions of an asset, as they are recorded: the `data` of the SDK's partitions, with room for later fields.
 * An unknown member is refused: it would change which partitions exist, and we would not know how.
 */
export const partitionDefinition = z.discriminatedUnion('type', [
  timePartitions,
  listedPartitions,
  dynamicPartitions,
  z.strictObject({
    type: z.literal('multi'),
    dimensions: z
      .record(dimensionName, dimension)
      .refine((dimensions) => Object.keys(dimensions).length > 0, 'must have a dimension'),
  }),
])

export type PartitionDefinition = z.infer<typeof partitionDefinition>
/** How an asset is partitioned; undefined for an asset without partitions. */
export type Partitioning = PartitionDefinition | undefined
/** Anything but a product of dimensions. */
export type DimensionDefinition = z.infer<typeof dimension>
export type TimePartitions = z.infer<typeof timePartitions>
export type MultiDefinition = Extract<PartitionDefinition, { type: 'multi' }>

export function isTime(definition: PartitionDefinition | undefined): definition is TimePartitions {
  return definition !== undefined && 'timezone' in definition
}

/** A time definition as cron windows. */
export function timeDefinition(partitions: TimePartitions): TimeDefinition {
  const { type, end_offset, ...rest } = partitions
  const given = Object.entries({ ...rest, endOffset: end_offset }).filter(([, value]) => value !== null && value !== undefined)
  return unitDefinition(type, Object.fromEntries(given) as unknown as UnitOptions)
}

/** In the order in which positions count: sorted, the last varying fastest. None when there is one dimension without a name. */
export function dimensionNames(definition: PartitionDefinition): readonly string[] {
  return definition.type === 'multi' ? Object.keys(definition.dimensions).sort() : []
}

/** The dimensions with their names, in the same order. */
export function dimensionsOf({ dimensions }: MultiDefinition): readonly (readonly [string, DimensionDefinition])[] {
  return Object.entries(dimensions).sort(([a], [b]) => (a < b ? -1 : 1))
}

/** A definition with one dimension is that dimension, by whatever name. */
export function dimensionOf(definition: PartitionDefinition, name: string): DimensionDefinition | undefined {
  if (definition.type !== 'multi') return definition
  return Object.hasOwn(definition.dimensions, name) ? definition.dimensions[name] : undefined
}

/** The one key of a partition, however it was requested. Only its `PartitionSet` knows if it exists. */
export function canonicalKey(definition: PartitionDefinition, asked: string | PartitionValues): string {
  if (definition.type === 'multi') return keyOfDimensions(dimensionNames(definition), asked)
  if (typeof asked === 'string') return asked
  throw new ServoError(
    'invalid',
    'bad_partition_key',
    `a partition key of this asset has no dimensions, but the request names ${Object.keys(asked).join(', ')}`,
    {
      hint: `These partitions (${definition.type}) have a single dimension: write the key alone.`,
    },
  )
}

export function sameDefinition(a: PartitionDefinition, b: PartitionDefinition): boolean {
  return canonicalJson(withoutNulls(a)) === canonicalJson(withoutNulls(b))
}

/** A member that is null means the same as an absent one. */
function withoutNulls(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, member]) => member !== null)
      .map(([name, member]) => [name, withoutNulls(member)]),
  )
}
