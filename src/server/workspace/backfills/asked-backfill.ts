import type { BackfillPreview, BackfillPreviewBody } from '../../../api/automation/backfill-contract.ts'
import type { RecordedGraph } from '../../../domain/assets/definitions.ts'
import type { GraphPartitions } from '../../../domain/assets/graph-partitions.ts'
import type { NewBackfill } from '../../../domain/backfills/backfill-created.event.ts'
import { partitionsOfBackfill } from '../../../domain/backfills/frozen-set.ts'
import { retriedPositions } from '../../../domain/backfills/retried-positions.ts'
import { askedPositions, type ChosenPositions } from '../../../domain/backfills/selecting/asked-positions.ts'
import { refuseImpossible } from '../../../domain/backfills/selecting/refuse-impossible.ts'
import { stagesOf } from '../../../domain/backfills/selecting/stages.ts'
import { refuseTooMany } from '../../../domain/backfills/selecting/too-many.ts'
import { linksFingerprint, whatChanged } from '../../../domain/backfills/what-changed.ts'
import { selectedAssets } from '../../../domain/selection/selected-assets.ts'
import { ServoError } from '../../../lib/error.ts'
import { canonicalJson } from '../../../lib/json.ts'
import { toIso } from '../../../lib/time.ts'
import type { PartitionDefinition } from '../../../partitions/definition.ts'
import { packSet } from '../../../partitions/packed-set.ts'
import { checkSelection } from '../check-selection.ts'
import type { Knowledge } from '../knowledge.ts'
import type { Statuses } from '../status/statuses.ts'
import type { FoundBackfill } from './backfill-reader.ts'
import { type MissingInputs, missingInputs } from './missing-inputs.ts'

/** Why partitions are left out. */
export const NO_MATCH = 'no partition matches'
export const HAS_NONE = 'no partition exists'
export const EXISTS = 'materialized already'

/** More changes than this, one in each look, mean that they do not stop. */
const MAX_TRIES = 10

/** What a request means now, settled: as the event that creates it has it. */
export interface SettledBackfill extends Pick<NewBackfill, 'as_of' | 'stages' | 'dynamic_keys' | 'graph_version'> {
  readonly left_out: BackfillPreview['left_out']
  readonly missing_inputs: MissingInputs
}

/** With the partitions that its positions mean. */
export interface AskedBackfill {
  readonly settled: SettledBackfill
  readonly partitions: GraphPartitions
}

/** What there was when a request was looked at. */
interface Moment {
  readonly now: number
  readonly recorded: RecordedGraph
  readonly partitions: GraphPartitions
  /** In graph order. */
  readonly assets: readonly string[]
  /** By set: those that the assets are partitioned by, or are made from. */
  readonly dynamicKeys: ReadonlyMap<string, readonly string[]>
}

/**
 * Finds out which partitions a request means at one moment. The status of partitions is looked up meanwhile: if keys are added or removed, or
 * the project changes, positions have another meaning by then, and the request is looked at again.
 */
export async function settle(known: Knowledge, statuses: Statuses, body: BackfillPreviewBody): Promise<AskedBackfill> {
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const moment = momentOf(known, body)
    const settled = await settleAt(moment, statuses, body)
    if (isStill(known, moment)) return { settled, partitions: moment.partitions }
  }
  throw new ServoError('conflict', 'partitions_changed', 'the partitions change faster than their status can be looked up', {
    hint: 'Try again, or select fewer partitions.',
  })
}

function momentOf(known: Knowledge, body: BackfillPreviewBody): Moment {
  const recorded = known.graph.get()
  const { graph } = recorded
  checkSelection(graph, 'select', body.select)
  const selected = new Set(selectedAssets(graph, body.select))
  const assets = graph.order.filter((key) => selected.has(key) && graph.canBeMade(key))
  if (assets.length === 0)
    throw new ServoError('invalid', 'bad_selection', `${body.select.join(', ').slice(0, 200)} selects only sources`, {
      hint: 'Other programs materialize sources. Select assets downstream of them.',
    })
  const now = known.now()
  const partitions = known.graph.partitions()
  const sets = new Set<string>()
  for (const asset of assets)
    for (const key of [asset, ...partitions.links(asset).map(({ upstream }) => upstream)])
      for (const name of dynamicSetsIn(partitions.of(key).definition)) sets.add(name)
  return {
    now,
    recorded,
    partitions,
    assets,
    dynamicKeys: new Map([...sets].map((name) => [name, partitions.dynamicKeys(name)])),
  }
}

function isStill(known: Knowledge, { recorded, partitions, dynamicKeys }: Moment): boolean {
  if (known.graph.get() !== recorded) return false
  return [...dynamicKeys].every(([name, keys]) => canonicalJson(partitions.dynamicKeys(name)) === canonicalJson(keys))
}

async function settleAt(moment: Moment, statuses: Statuses, body: BackfillPreviewBody): Promise<SettledBackfill> {
  const { assets, partitions, recorded } = moment
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
  refuseImpossible(chosen, partitions)
  const missing_inputs = await missingInputs({ graph: recorded.graph, partitions }, statuses, chosen)
  return { ...frozen(moment, chosen, body), left_out, missing_inputs }
}

/** What a retry of a backfill makes again. */
export function settleRetry(known: Knowledge, { backfill, assets }: FoundBackfill): SettledBackfill {
  const recorded = known.graph.get()
  const positions = retriedPositions(backfill, assets, partitionsOfBackfill(known.rows(), backfill, recorded.mappings))
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
  { now, recorded, partitions, dynamicKeys }: Moment,
  chosen: ChosenPositions,
  { chunk_size: chunkSize, newest_first }: BackfillPreviewBody,
): Omit<SettledBackfill, 'left_out' | 'missing_inputs'> {
  const { graph, version, mappings } = recorded
  const stages = stagesOf(chosen, { graph, partitions, chunkSize })
  if (newest_first) {
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
  const names = new Set(stages.flatMap(({ partitions: definition }) => dynamicSetsIn(definition ?? undefined)))
  const sets = [...names].map((name): [string, string[]] => [name, [...(dynamicKeys.get(name) ?? [])]])
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
  definition: PartitionDefinition | Extract<NewBackfill['stages'][number]['partitions'], object> | undefined,
): string[] {
  if (definition?.type === 'dynamic') return [definition.name]
  if (definition?.type !== 'multi') return []
  return Object.values(definition.dimensions).flatMap((one) => (one.type === 'dynamic' ? [one.name] : []))
}

function noMatch(assets: readonly string[]): ServoError {
  const [only = ''] = assets
  const of = assets.length === 1 ? only : `these ${assets.length} assets`
  return new ServoError('invalid', 'no_such_partition', `no partition of ${of} matches the filter`, {
    hint: 'In a pattern, * stands for any text; without it, the pattern is a whole key.',
  })
}
