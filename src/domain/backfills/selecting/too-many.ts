import { ServoError } from '../../../lib/error.ts'
import { spanCount } from '../../../partitions/key-range.ts'

/** Each partition becomes a task. More than this takes longer than anybody waits. */
export const MAX_PARTITIONS = 10_000_000
/** Spans that are worked out for a selector: as many as fit into a second, and into memory. */
export const MAX_SPANS = 2_000_000
/** Positions that are looked at one by one to find those of an asset that is partitioned differently. */
export const MAX_MAPPED = 500_000
/** Keys of a dimension that are compared with a wildcard, one by one. */
const MAX_MATCHED = 4_000_000

const tooMany = (message: string, hint: string): ServoError =>
  new ServoError('invalid', 'too_many_partitions', message, { hint })

/** Refuses a backfill of more than anybody waits for, before any of it is worked out. */
export function refuseTooMany(chosen: ReadonlyMap<string, { readonly count: number }>): void {
  const total = [...chosen.values()].reduce((sum, { count }) => sum + count, 0)
  if (total > MAX_PARTITIONS)
    throw tooMany(
      `the backfill covers ${total} partitions; the limit is ${MAX_PARTITIONS}`,
      'Create several backfills, each of a smaller range.',
    )
}

/** Refuses a selection whose spans would take too long to list, and returns how many it has. */
export function refuseScattered(range: Parameters<typeof spanCount>[0], before = 0): number {
  if (range.count > MAX_PARTITIONS)
    throw tooMany(
      `the selector covers ${range.count} partitions; the limit is ${MAX_PARTITIONS}`,
      'Create several backfills, each of a smaller range.',
    )
  const all = before + spanCount(range)
  if (all > MAX_SPANS) throw tooScattered()
  return all
}

export const tooScattered = (): ServoError =>
  tooMany(
    'the partitions of the backfill lie too far apart to be listed',
    'Create several backfills, each of a smaller range, or include the partitions between them.',
  )

export function refuseMatching(count: number, pattern: string): void {
  if (count > MAX_MATCHED)
    throw tooMany(
      `${count} keys are too many to find those that match ${pattern}; the limit is ${MAX_MATCHED}`,
      'Select a range instead: --start and --end.',
    )
}

export function refuseMapping(key: string, count: number): void {
  if (count > MAX_MAPPED) throw tooManyToMap(key, count)
}

export const tooManyToMap = (key: string, count: number): ServoError =>
  tooMany(
    `${count} partitions of ${key} are too many to find the related ones of an asset that is partitioned differently; the limit is ${MAX_MAPPED}`,
    'Create a backfill for each asset, or for fewer partitions.',
  )

/** The error of a selector that is too large for any asset; others only mean that it is not for this one. */
export const isTooMany = (error: ServoError): boolean => error.code === 'too_many_partitions'
