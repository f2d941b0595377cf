import { type AssetDefinition, assetDefinition, type ProjectManifest } from '../../contract/project-manifest.ts'
import { assert } from '../../lib/assert.ts'
import { base32 } from '../../lib/base32.ts'
import { sha256Bytes } from '../../lib/hash.ts'
import { canonicalJson } from '../../lib/json.ts'
import { ulidTime } from '../../lib/ulid.ts'
import type { EventDefinition } from '../../model/event.ts'
import type { Row } from '../../model/table.ts'
import { inParts } from '../event-parts.ts'
import type { assetDefinitions } from './asset-definitions.table.ts'
import type { AssetsDefined } from './assets-defined.event.ts'
import { AssetGraph } from './graph.ts'
import { GraphMappings } from './graph-mappings.ts'
import type { pools } from './pools.table.ts'

type GraphPart = typeof AssetsDefined extends EventDefinition<infer _, infer I> ? I : never
type DeclaredAsset = GraphPart['assets'][number]
type Declared = Pick<Row<typeof pools>, 'defined_at' | 'clock_turn' | 'row_version'>
type KnownAsset = Pick<Row<typeof assetDefinitions>, 'asset_key' | 'asset_id' | 'definition' | 'renamed_from' | 'removed'>
type KnownPool = Pick<Row<typeof pools>, 'pool' | 'slots'>

export interface ProjectToRecord {
  readonly manifest: Pick<ProjectManifest, 'assets' | 'pools'>
  /** Every row of `asset_definitions`, including removed assets, whose ids are not reused. */
  readonly known: Iterable<KnownAsset & Declared>
  readonly knownPools: Iterable<KnownPool & Declared>
  readonly now: number
  readonly mintId: () => string
}

/** The events for everything that changed since the graph on record; none when nothing has. */
export function assetsDefined({ manifest, known, knownPools, now, mintId }: ProjectToRecord): GraphPart[] {
  const recorded = new Map([...known].map((row) => [row.asset_key, row]))
  const recordedPools = [...knownPools]
  const declared = new Map(manifest.assets.map((asset) => [asset.asset_key, asset]))
  const ids = assetIds(declared, recorded, mintId)
  const changed: DeclaredAsset[] = []
  for (const [asset_key, asset] of declared) {
    const row = recorded.get(asset_key)
    const asset_id = ids.get(asset_key)
    assert(asset_id !== undefined, 'every declared asset is given an id')
    if (row && !row.removed && row.asset_id === asset_id && isSame(row.definition, asset)) continue
    changed.push({ asset_key, asset_id, code_version: asset.code_version, definition: asset, renamed_from: asset.renamed_from })
  }
  for (const { asset_key, asset_id, definition, renamed_from, removed } of recorded.values()) {
    if (!removed && !declared.has(asset_key)) changed.push({ asset_key, asset_id, definition, renamed_from, removed: true })
  }
  const changedPools = poolChanges(manifest.pools, recordedPools)
  if (changed.length === 0 && changedPools.length === 0) return []

  const graph_version = graphVersion(declared.values())
  const clock_turn = turnAfter([...recorded.values(), ...recordedPools], now)
  const parts = inParts(changed, changed.map(canonicalJson), ({ asset_key }) => `the declaration of ${asset_key}`)
  return (parts.length === 0 ? [[]] : parts).map((assets, part) => ({
    graph_version,
    assets,
    ...(part === 0 && changedPools.length > 0 && { pools: changedPools }),
    part,
    ...(clock_turn > 0 && { clock_turn }),
  }))
}

/** What is declared now is newer than what is on record, although a clock that was ahead may have recorded it. */
function turnAfter(known: readonly Declared[], now: number): number {
  // Ids of a process only grow, so one that ran while its clock was set back gave an id of the future to what it recorded now.
  const isAhead = ({ defined_at, row_version }: Declared): boolean => defined_at > now || ulidTime(row_version) > now
  return known.reduce((turn, row) => Math.max(turn, (row.clock_turn ?? 0) + (isAhead(row) ? 1 : 0)), 0)
}

/**
 * An asset keeps its id for as long as its key is declared, gets it back when the key returns, and inherits that of the key
 * it was renamed from. No two assets of a graph share one: the asset that had it before keeps it.
 */
function assetIds(
  declared: ReadonlyMap<string, AssetDefinition>,
  recorded: ReadonlyMap<string, KnownAsset>,
  mintId: () => string,
): Map<string, string> {
  const ids = new Map<string, string>()
  const taken = new Set<string>()
  const give = (key: string, id: string) => {
    ids.set(key, id)
    taken.add(id)
  }
  for (const key of declared.keys()) {
    const row = recorded.get(key)
    if (row && !row.removed) give(key, row.asset_id)
  }
  for (const [key, { renamed_from }] of declared) {
    if (ids.has(key)) continue
    const inherited = [key, renamed_from ?? key].map((each) => recorded.get(each)?.asset_id)
    give(key, inherited.find((id) => id !== undefined && !taken.has(id)) ?? mintId())
  }
  return ids
}

function poolChanges(declared: ProjectManifest['pools'], known: Iterable<KnownPool>): KnownPool[] {
  const recorded = new Map([...known].map(({ pool, slots }) => [pool, slots]))
  const wanted = new Map(Object.entries(declared))
  const gone = [...recorded].filter(([pool, slots]) => slots !== null && !wanted.has(pool)).map(([pool]) => pool)
  const changed = [...wanted].filter(([pool, slots]) => recorded.get(pool) !== slots)
  return [...changed.map(([pool, slots]) => ({ pool, slots })), ...gone.map((pool) => ({ pool, slots: null }))]
}

const isSame = (stored: unknown, asset: AssetDefinition): boolean => canonicalJson(stored) === canonicalJson(asset)

/** The version of a graph: equal for equal assets, in whatever order their files were read. */
function graphVersion(assets: Iterable<AssetDefinition>): string {
  const texts = [...assets].map((asset) => canonicalJson(asset)).sort()
  return `g_${base32(sha256Bytes(texts.join('\n'))).slice(0, 26)}`
}

export interface RecordedGraph {
  readonly graph: AssetGraph
  readonly version: string
  readonly mappings: GraphMappings
}

/**
 * The newest graph as the table has it. Its version is computed from the assets and not read from their rows: two projects
 * loaded at the same moment leave a mixture behind, which must not pass for either.
 */
export function graphOf(rows: Iterable<Pick<KnownAsset, 'definition' | 'removed'>>): RecordedGraph {
  const assets: AssetDefinition[] = []
  for (const { definition, removed } of rows) {
    if (removed) continue
    // Any version of Servo may have recorded it: newer fields get their defaults, and a value that is not an asset is skipped.
    const { success, data } = assetDefinition.safeParse(definition)
    if (success) assets.push(data)
  }
  const graph = new AssetGraph(assets)
  let version: string | undefined
  return {
    graph,
    // Computed at the first question: a reader that only lists ten thousand assets need not hash them.
    get version() {
      version ??= graphVersion(assets)
      return version
    },
    mappings: new GraphMappings(graph),
  }
}
