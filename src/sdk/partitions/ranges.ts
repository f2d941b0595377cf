import { isTime } from '../../partitions/definition.ts'
import { invalid, show } from '../invalid.ts'
import { isPartitions, type Partitions } from './partitions.ts'

/** Partitions that one task materializes as a range. */
export interface Ranges<Key, Span = undefined, Kind = unknown> extends Partitions<Key, Span, Kind> {
  readonly ranges: RangesData
}

export interface RangesData {
  /** The most partitions of one task. */
  readonly at_most?: number
}

/** The longest range of one task; a longer one is several tasks. */
const MAX_KEYS_PER_RANGE = 10_000

/**
 * Lets one task materialize a range of neighbouring partitions, instead of one task for each: for programs and databases that do a month
 * as fast as a day. The asset stores its own data. With several dimensions, a range runs along the time dimension.
 */
export function ranges<Key, Span, Kind>(
  partitions: Partitions<Key, Span, Kind>,
  options: { /** The most partitions of one task. Default: 10,000. */ atMost?: number } = {},
): Ranges<Key, Span, Kind> {
  if (!isPartitions(partitions))
    throw invalid('bad_ranges', `ranges(${show(partitions)}) needs partitions`, "Write ranges(daily({ start: '2025-01-01' })).")
  const { atMost } = options
  if (atMost !== undefined && !(Number.isInteger(atMost) && atMost >= 1 && atMost <= MAX_KEYS_PER_RANGE))
    throw invalid(
      'bad_ranges',
      `\`atMost\` of ranges() cannot be ${show(atMost)}`,
      `Write a whole number from 1 to ${MAX_KEYS_PER_RANGE}.`,
    )
  const time = partitions.data.type === 'multi' ? Object.values(partitions.data.dimensions).filter(isTime) : []
  if (partitions.data.type === 'multi' && time.length !== 1)
    throw invalid(
      'bad_ranges',
      `ranges() needs exactly one time dimension, not ${time.length}`,
      'Remove ranges(), or use one time dimension.',
    )
  return { ...partitions, ranges: atMost === undefined ? {} : { at_most: atMost } }
}

export function isRanges(partitions: unknown): partitions is Ranges<unknown, unknown> {
  return isPartitions(partitions) && 'ranges' in partitions
}
