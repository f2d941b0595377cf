import type { BackfillPreview, BackfillPreviewBody } from '../../../api/automation/backfill-contract.ts'
import type { NewBackfill } from '../../../domain/backfills/backfill-created.event.ts'
import { positionsOfPartitions } from '../../../domain/backfills/chunk-work.ts'
import { askedPositions, type ChosenPositions } from '../../../domain/backfills/selecting/asked-positions.ts'
import { stagesOf } from '../../../domain/backfills/selecting/stages.ts'
import { refuseTooMany } from '../../../domain/backfills/selecting/too-many.ts'
import { linksFingerprint, whatChanged } from '../../../domain/backfills/what-changed.ts'
import { selectedAssets } from '../../../domain/selection/selected-assets.ts'
import { ServoError } from '../../../lib/error.ts'
import { toIso } from '../../../lib/time.ts'
import type { PartitionDefinition } from '../../../partitions/definition.ts'
import { packSet, unpackSet } from '../../../partitions/packed-set.ts'
import { intersection, type Spans, slice, union } from '../../../partitions/spans.ts'
import { checkSelection } from '../check-selection.ts'
import type { Knowledge } from '../knowledge.ts'
import type { Statuses } from '../status/statuses.ts'
import { usualDurations } from '../usual-durations.ts'
import type { FoundBackfill } from './backfill-reader.ts'
import { type MissingInputs, missingInputs } from './missing-inputs.ts'

/** Keys of the first chunk that a preview shows. */
const SHOWN_KEYS = 10
const DEFAULT_CONCURRENCY = 2

/** What a request means now, settled: as the event that creates it has it. */
export interface SettledBackfill extends Pick<NewBackfill, 'as_of' | 'stages' | 'dynamic_keys' | 'graph_version'> {
  readonly left_out: BackfillPreview['left_out']
  readonly missing_inputs: MissingInputs
}

/** Finds out which partitions a request means at this moment. */
export async function settle(known: Knowledge, statuses: Statuses, body: BackfillPreviewBody): Promise<SettledBackfill> {
  const { graph } = known.graph.get()
  checkSelection(graph, 'assets', body.assets)
  const selected = new Set(selectedAssets(graph, body.assets))
  const assets = graph.order.filter((key) => selected.has(key) && graph.canBeMade(key))
  if (assets.length === 0)
    throw new ServoError('invalid', 'bad_selection', `${body.assets.join(', ').slice(0, 200)} selects only sources`, {
      hint: 'Other programs materialize sources. Select assets downstream of them.',
    })
  const partitions = known.graph.partitions()
  const asked = askedPositions(assets, body.partitions, partitions)
  // Before the status of any is looked at.
  refuseTooMany(asked)
  const { type } = body.partitions
  if (type === 'filter' && [...asked.values()].every(({ count }) => count === 0)) throw noMatch(assets)
  const isState = type === 'missing' || type === 'failed' || type === 'stale'
  const inState = isState ? await statuses.positionsOf(asked, type) : asked
  const chosen = body.skip_existing ? await statuses.positionsOf(inState, 'missing') : inState
  const left_out = assets.flatMap((asset_key) => {
    const count = (of: ChosenPositions): number => of.get(asset_key)?.count ?? 0
    if (count(asked) === 0)
      return [{ asset_key, partitions: 0, why: partitions.of(asset_key).count === 0 ? HAS_NONE : NO_MATCH }]
    const [notInState, existing] = [count(asked) - count(inState), count(inState) - count(chosen)]
    return [
      ...(notInState > 0 ? [{ asset_key, partitions: notInState, why: `not ${type}` }] : []),
      ...(existing > 0 ? [{ asset_key, partitions: existing, why: EXISTS }] : []),
    ]
  })
  const missing_inputs = await missingInputs(known, statuses, chosen)
  return { ...frozen(known, chosen, body.chunk_size, body.newest_first), left_out, missing_inputs }
}

/** What failed in a backfill, and what was skipped because of that. */
export function settleRetry(known: Knowledge, { backfill, assets }: FoundBackfill): SettledBackfill {
  const recorded = known.graph.get()
  const positions = new Map(assets.map((row) => [row.asset_key, positionsOfPartitions(backfill, row, ['failed', 'skipped'])]))
  const stages = backfill.stages.flatMap((stage) => {
    const own = stage.assets.flatMap((asset_key) => {
      const failed = positions.get(asset_key)
      return failed === undefined || failed.count === 0 ? [] : [{ asset_key, positions: failed }]
    })
    return own.length === 0 ? [] : [{ ...stage, own }]
  })
  const covered = new Set(stages.flatMap(({ own }) => own.map(({ asset_key }) => asset_key)))
  const retried = { ...backfill, stages: stages.map(({ own, ...stage }) => ({ ...stage, assets: own.map(keyOf) })) }
  const changed = whatChanged(retried, assets, recorded)
  if (changed !== undefined)
    throw new ServoError('conflict', 'partitions_changed', changed.replace(/;.*$/, ''), {
      hint: 'Create a backfill of what is there now.',
    })
  return {
    // The positions are those of the parent, and so is the moment that they are counted by.
    as_of: toIso(backfill.as_of),
    ...(backfill.dynamic_keys !== null && {
      dynamic_keys: Object.fromEntries(Object.entries(backfill.dynamic_keys).map(([name, keys]) => [name, [...keys]])),
    }),
    graph_version: backfill.graph_version,
    stages: stages.map(({ own, partitions, chunk_size }) => ({
      assets: own.map(({ asset_key, positions: failed }) => ({
        asset_key,
        positions: packSet(failed),
        links: linksFingerprint(asset_key, covered, recorded.mappings),
      })),
      partitions,
      chunk_size,
    })),
    left_out: [],
    missing_inputs: [],
  }
}

const keyOf = ({ asset_key }: { readonly asset_key: string }): string => asset_key

function frozen(
  known: Knowledge,
  chosen: ChosenPositions,
  chunkSize: number | undefined,
  newestFirst: boolean | undefined,
): Omit<SettledBackfill, 'left_out' | 'missing_inputs'> {
  const { graph, version, mappings } = known.graph.get()
  const now = known.now()
  const partitions = known.graph.partitions()
  const stages = stagesOf(chosen, { graph, partitions, chunkSize })
  if (newestFirst) {
    const own = stages
      .flatMap(({ assets }) => assets)
      .find(({ asset_key }) => partitions.links(asset_key).some(({ upstream }) => upstream === asset_key))
    if (own !== undefined)
      throw new ServoError(
        'invalid',
        'bad_order',
        `${own.asset_key} is made from its own past, so its newest partitions cannot come first`,
        {
          hint: 'Leave out newest_first.',
          facts: { field: 'newest_first' },
        },
      )
  }
  const names = new Set(stages.flatMap(({ partitions: definition }) => (definition == null ? [] : dynamicSetsIn(definition))))
  const sets = [...names].map((name) => {
    const keys = [...partitions.dynamicKeys(name)]
    return [name, keys] as const
  })
  const covered = new Set(stages.flatMap(({ assets }) => assets.map(({ asset_key }) => asset_key)))
  const pinned = stages.map(({ assets, ...stage }) => ({
    ...stage,
    assets: assets.map((one) => ({ ...one, links: linksFingerprint(one.asset_key, covered, mappings) })),
  }))
  return {
    as_of: toIso(now),
    stages: pinned,
    graph_version: version,
    ...(sets.length > 0 && { dynamic_keys: Object.fromEntries(sets) }),
  }
}

function dynamicSetsIn(
  definition: PartitionDefinition | Extract<NewBackfill['stages'][number]['partitions'], object>,
): string[] {
  if (definition.type === 'dynamic') return [definition.name]
  if (definition.type !== 'multi') return []
  return Object.values(definition.dimensions).flatMap((one) => (one.type === 'dynamic' ? [one.name] : []))
}

/** What a settled backfill would do. */
export async function previewOf(
  known: Knowledge,
  settled: SettledBackfill,
  body: BackfillPreviewBody,
): Promise<BackfillPreview> {
  const partitions = known.graph.partitions()
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
    first_chunk: first === undefined ? null : firstChunk(known, settled, first, body.newest_first ?? false),
    left_out: settled.left_out,
    missing_inputs: settled.missing_inputs,
    estimate_ms: await estimate(known, assets, body.max_concurrent_runs ?? DEFAULT_CONCURRENCY),
    nothing_to_do: total_partitions > 0 ? null : nothingToDo(settled.left_out),
  }
}

const NO_MATCH = 'no partition matches'
const HAS_NONE = 'no partition exists'
const EXISTS = 'materialized already'

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

function noMatch(assets: readonly string[]): ServoError {
  const [only = ''] = assets
  const of = assets.length === 1 ? only : `these ${assets.length} assets`
  return new ServoError('invalid', 'no_such_partition', `no partition of ${of} matches the filter`, {
    hint: 'In a pattern, * stands for any text; without it, the pattern is a whole key.',
  })
}

function firstChunk(
  known: Knowledge,
  settled: SettledBackfill,
  { assets, chunk_size, all }: { assets: readonly string[]; chunk_size: number; all: Spans },
  newestFirst: boolean,
): BackfillPreview['first_chunk'] {
  const chunk = newestFirst ? slice(all, all.count - chunk_size, all.count) : slice(all, 0, chunk_size)
  const own = settled.stages[0]?.assets ?? []
  const pairs = own.map(({ positions }) => intersection(chunk, unpackSet(positions)).count)
  const set = known.graph.partitions().of(assets[0] ?? '')
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
