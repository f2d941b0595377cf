import { isTime } from '../../partitions/definition.ts'
import { invalid, show } from '../invalid.ts'
import { isPartitions, type Partitions } from './partitions.ts'

/** Partitions of which one task makes a whole range. */
export interface Ranges<Key, Span = undefined, Kind = unknown> extends Partitions<Key, Span, Kind> {
  readonly ranges: RangesData
}

export interface RangesData {
  /** How many partitions a task makes at most. */
  readonly at_most?: number
}

/** The longest range of one task; a longer one is several tasks. */
const MAX_KEYS_PER_RANGE = 10_000

/**
 * Lets a run make neighbouring partitions together, in one task that gets all their keys, instead of a task for each: for
 * programs and databases that do a month as fast as a day. What makes them keeps its own data. Of several dimensions a range
 * goes along the one that is time.
 */
export function ranges<Key, Span, Kind>(
  partitions: Partitions<Key, Span, Kind>,
  options: { /** How many partitions at a time; 10,000 unless told. */ atMost?: number } = {},
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
