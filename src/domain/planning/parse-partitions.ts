import { ServoError } from '../../lib/error.ts'
import { canonicalKey } from '../../partitions/definition.ts'
import { readKey } from '../../partitions/key.ts'
import type { KeyRange } from '../../partitions/key-range.ts'
import { type KeySelection, rangesOf } from '../../partitions/key-selection.ts'
import { type PartitionSet, positionIn } from '../../partitions/partition-set.ts'

/**
 * Partitions as people write them: a key, `2025-01-01..2025-01-31` with either end left out, or `*`. For several dimensions
 * the same in each, `date=2025-01-01..,region=eu`; a dimension that is left out is taken whole.
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
  const selection: Record<string, ReturnType<typeof piecesOf>> = {}
  for (const [name, value] of Object.entries(readKey(asked))) {
    const dimension = set.dimensions.find((one) => one.name === name)
    if (dimension === undefined) {
      throw new ServoError('invalid', 'bad_partition_key', `${asked}: there is no dimension ${name}`, {
        hint: `The dimensions are ${set.dimensions.map((one) => one.name).join(', ')}.`,
      })
    }
    selection[name] = piecesOf(dimension.set, value)
  }
  return selection
}

const RANGE = /^(.*?)\.\.(.*)$/s

function piecesOf(set: PartitionSet, asked: string): 'all' | (string | { from?: string; to?: string })[] {
  if (asked === '*') return 'all'
  if (set.has(asked)) return [asked]
  const [, from, to] = RANGE.exec(asked) ?? []
  if (from === undefined || to === undefined) {
    positionIn(set, asked)
    return [asked]
  }
  return [{ ...(from !== '' && { from }), ...(to !== '' && { to }) }]
}
