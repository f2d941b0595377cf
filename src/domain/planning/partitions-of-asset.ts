import { isServoError, ServoError } from '../../lib/error.ts'
import { keysOf } from '../../partitions/key-list.ts'
import type { KeyRange } from '../../partitions/key-range.ts'
import { type PartitionSet, positionIn, saidOf } from '../../partitions/partition-set.ts'
import type { GraphPartitions } from '../assets/graph-partitions.ts'
import { parsePartitions } from './parse-partitions.ts'
import { partitionsWanted } from './partitions-of-run.ts'

/** As many as one request may name: each becomes an event, and all of them one segment. */
const MAX_NAMED_PARTITIONS = 10_000

/**
 * The partitions of one asset that a request names, by key or range, each once and in the order of the asset. For an asset
 * without partitions that is its one part, whose key is the empty text, and nothing may be named.
 */
export function partitionsOfAsset(
  assetKey: string,
  asked: readonly string[] | undefined,
  partitions: GraphPartitions,
): string[] {
  const set = partitions.of(assetKey)
  if (set.definition === undefined) {
    if (asked === undefined) return ['']
    throw new ServoError('invalid', 'no_partitions', `${assetKey} has no partitions`, {
      hint: 'Remove the partition from the request.',
    })
  }
  if (asked === undefined || asked.length === 0) throw partitionsWanted(assetKey, set)
  const positions = new Set<number>()
  for (const entry of asked) {
    for (const range of namedOf(assetKey, set, entry)) {
      if (positions.size + range.count > MAX_NAMED_PARTITIONS) throw tooMany(assetKey, positions.size + range.count)
      for (const key of keysOf(range)) positions.add(positionIn(set, key))
    }
  }
  if (positions.size === 0) throw nothingNamed(assetKey, asked)
  return [...positions].sort((a, b) => a - b).map((position) => set.at(position))
}

/** The partitions of an asset that a text names. The error about a key that it does not have names the asset. */
export function namedOf(assetKey: string, set: PartitionSet, asked: string): readonly KeyRange[] {
  try {
    return parsePartitions(set, asked)
  } catch (error) {
    if (!isServoError(error)) throw error
    const { kind, code, message, hint, facts } = error
    throw new ServoError(kind, code, saidOf(assetKey, message), { ...(hint !== undefined && { hint }), facts, cause: error })
  }
}

const nothingNamed = (assetKey: string, asked: readonly string[]): ServoError =>
  new ServoError('not_found', 'no_such_partition', `no partition of ${assetKey} matches ${asked.join(', ').slice(0, 200)}`, {
    hint: `\`servo assets show ${assetKey}\` shows its partitions.`,
  })

const tooMany = (assetKey: string, count: number): ServoError =>
  new ServoError(
    'invalid',
    'too_many_partitions',
    `the request names ${count} partitions of ${assetKey}; the limit is ${MAX_NAMED_PARTITIONS}`,
    {
      hint: 'Send several requests, each with a smaller range.',
    },
  )
