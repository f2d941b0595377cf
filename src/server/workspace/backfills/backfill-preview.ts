import type { BackfillPreview, BackfillPreviewBody } from '../../../api/automation/backfill-contract.ts'
import { unpackSet } from '../../../partitions/packed-set.ts'
import { intersection, type Spans, slice, union } from '../../../partitions/spans.ts'
import type { Knowledge } from '../knowledge.ts'
import { usualDurations } from '../usual-durations.ts'
import { type AskedBackfill, EXISTS, HAS_NONE, NO_MATCH } from './asked-backfill.ts'

/** Keys of the first chunk that a preview shows. */
const SHOWN_KEYS = 10
export const DEFAULT_CONCURRENCY = 2

/** What a settled backfill would do. */
export async function previewOf(
  known: Knowledge,
  { settled, partitions }: AskedBackfill,
  body: BackfillPreviewBody,
): Promise<BackfillPreview> {
  const assets = settled.stages.flatMap((stage) =>
    stage.assets.map(({ asset_key, positions: numbers }) => {
      const positions = unpackSet(numbers)
      const set = partitions.of(asset_key)
      const keyAt = (index: number): string | null => (set.definition === undefined ? null : set.at(positions.at(index)))
      return { asset_key, partitions: positions.count, first: keyAt(0), last: keyAt(positions.count - 1) }
    }),
  )
  const stages = settled.stages.map(({ assets: own, chunk_size }) => {
    const all = union(own.map(({ positions }) => unpackSet(positions)))
    return { assets: own.map(({ asset_key }) => asset_key), chunk_size, chunks: Math.ceil(all.count / chunk_size), all }
  })
  const [first] = stages
  const total_partitions = assets.reduce((sum, { partitions: count }) => sum + count, 0)
  return {
    assets,
    total_partitions,
    total_chunks: stages.reduce((sum, { chunks }) => sum + chunks, 0),
    stages: stages.map(({ all: _, ...shown }) => shown),
    first_chunk: first === undefined ? null : firstChunk({ settled, partitions }, first, body.newest_first ?? false),
    left_out: settled.left_out,
    missing_inputs: settled.missing_inputs,
    estimate_ms: await estimate(known, assets, body.max_concurrent_runs ?? DEFAULT_CONCURRENCY),
    nothing_to_do: total_partitions > 0 ? null : nothingToDo(settled.left_out),
  }
}

/** Why nothing is to be done, if that is the same for every asset. */
const NOTHING: Readonly<Record<string, (where: string, isOne: boolean) => string>> = {
  [NO_MATCH]: (where, isOne) => `no partition of ${isOne ? where : `these ${where}`} matches`,
  [HAS_NONE]: (where, isOne) => (isOne ? `${where} has no partitions` : `none of the ${where} has partitions`),
  [EXISTS]: (where, isOne) => `everything asked for exists already in ${isOne ? where : `all ${where}`}`,
  'not missing': (where, isOne) => `nothing is missing in ${isOne ? where : `any of the ${where}`}`,
  'not failed': (where, isOne) => `nothing has failed in ${isOne ? where : `any of the ${where}`}`,
  'not stale': (where, isOne) => `nothing is stale in ${isOne ? where : `any of the ${where}`}`,
}

export function nothingToDo(left_out: BackfillPreview['left_out']): string {
  const causes = Map.groupBy(left_out, ({ why }) => why)
  const said = [...causes].map(([why, all]) => {
    const keys = new Set(all.map(({ asset_key }) => asset_key))
    const [only = ''] = keys
    const isOne = keys.size === 1
    return NOTHING[why]?.(isOne ? only : `${keys.size} assets`, isOne) ?? why
  })
  return `nothing to do: ${said.length === 0 ? 'no partition is selected' : said.join('; ')}`
}

function firstChunk(
  { settled, partitions }: AskedBackfill,
  { assets, chunk_size, all }: { assets: readonly string[]; chunk_size: number; all: Spans },
  newestFirst: boolean,
): BackfillPreview['first_chunk'] {
  const chunk = newestFirst ? slice(all, all.count - chunk_size, all.count) : slice(all, 0, chunk_size)
  const own = settled.stages[0]?.assets ?? []
  const pairs = own.map(({ positions }) => intersection(chunk, unpackSet(positions)).count)
  const set = partitions.of(assets[0] ?? '')
  const keys = Array.from({ length: Math.min(SHOWN_KEYS, chunk.count) }, (_, i) => set.at(chunk.at(i)))
  return { partitions: pairs.reduce((sum, count) => sum + count, 0), keys: set.definition === undefined ? [] : keys }
}

async function estimate(known: Knowledge, assets: BackfillPreview['assets'], concurrency: number): Promise<number | null> {
  if (assets.length === 0) return null
  const usual = await usualDurations(
    known,
    assets.map(({ asset_key }) => asset_key),
  )
  let total = 0
  for (const { asset_key, partitions } of assets) {
    const each = usual[asset_key]
    if (each === undefined) return null
    total += each * partitions
  }
  return Math.round(total / concurrency)
}
