import { ServoError } from '../../lib/error.ts'
import { canonicalKey, isTime } from '../../partitions/definition.ts'
import { readKey } from '../../partitions/key.ts'
import type { KeyRange } from '../../partitions/key-range.ts'
import { type KeySelection, rangesOf } from '../../partitions/key-selection.ts'
import { type PartitionSet, positionIn } from '../../partitions/partition-set.ts'

/**
 * Partitions as people write them: a key, `2025-01-01..2025-01-31` with either end left out, `latest`, or `*`. For several dimensions
 * the same in each, `date=2025-01-01..,region=eu`; a dimension that is left out is taken whole, and `latest` alone means the one of time.
 */
export function parsePartitions(set: PartitionSet, asked: string): readonly KeyRange[] {
  const exact = exactly(set, asked)
  if (exact !== undefined) return rangesOf(set, [exact])
  return rangesOf(set, set.dimensions.length === 0 ? piecesOf(set, asked) : byDimension(set, asked))
}

function exactly(set: PartitionSet, asked: string): string | undefined {
  if (set.definition === undefined) return undefined
  try {
    const key = canonicalKey(set.definition, asked)
    return set.has(key) ? key : undefined
  } catch {
    return undefined
  }
}

function byDimension(set: PartitionSet, asked: string): KeySelection {
  if (asked === '*') return 'all'
  if (asked === LATEST) {
    const [only, another] = set.dimensions.filter((dimension) => isTime(dimension.set.definition))
    if (only === undefined || another !== undefined) throw noLatest(set)
    return { [only.name]: [latestOf(only.set)] }
  }
  const selection: Record<string, ReturnType<typeof piecesOf>> = {}
  const names = set.dimensions.map((dimension) => dimension.name)
  for (const [name, value] of Object.entries(readKey(asked, names))) {
    const dimension = set.dimensions.find((one) => one.name === name)
    if (dimension === undefined) {
      throw new ServoError('invalid', 'bad_partition_key', `${asked}: unknown dimension ${name}`, {
        hint: `The dimensions are ${names.join(', ')}.`,
      })
    }
    selection[name] = piecesOf(dimension.set, value)
  }
  return selection
}

export const LATEST = 'latest'

/** The parts of a set that are windows of time: itself, or some of its dimensions. */
export function timesOf(set: PartitionSet): PartitionSet[] {
  const parts = set.dimensions.length === 0 ? [set] : set.dimensions.map((dimension) => dimension.set)
  return parts.filter(({ definition }) => isTime(definition))
}

/** The last window that has closed. Keys of other sets have an order, but none of them is the latest. */
function latestOf(set: PartitionSet): string {
  if (!isTime(set.definition)) throw noLatest(set)
  if (set.count > 0) return set.at(set.count - 1)
  throw new ServoError('not_found', 'no_such_partition', 'there is no latest window: none has closed yet', {
    hint: 'Wait until the first window closes.',
  })
}

function noLatest({ dimensions }: PartitionSet): ServoError {
  const time = dimensions.filter((dimension) => isTime(dimension.set.definition))
  return new ServoError(
    'invalid',
    'no_latest',
    time.length > 1
      ? '`latest` needs a time dimension, but there are several here'
      : 'no time partitions, so `latest` does not apply to it',
    {
      hint: time.length > 1 ? `Name one: ${time[0]?.name}=latest.` : 'Name a key, or * for all.',
    },
  )
}

const RANGE = /^(.*?)\.\.(.*)$/s

function piecesOf(set: PartitionSet, asked: string): 'all' | (string | { from?: string; to?: string })[] {
  if (asked === '*') return 'all'
  if (set.has(asked)) return [asked]
  if (asked === LATEST) return [latestOf(set)]
  const [, from, to] = RANGE.exec(asked) ?? []
  if (from === undefined || to === undefined) {
    positionIn(set, asked)
    return [asked]
  }
  if (from === '' && to === '')
    throw new ServoError('invalid', 'bad_partition_key', '`..` names neither the first partition nor the last', {
      hint: 'Name one of them, or write * for all.',
    })
  return [{ ...(from !== '' && { from }), ...(to !== '' && { to }) }]
}
