import { setImmediate as pause } from 'node:timers/promises'
import type { assetDefinitions } from '../../../domain/assets/asset-definitions.table.ts'
import type { RecordedGraph } from '../../../domain/assets/definitions.ts'
import type { GraphPartitions } from '../../../domain/assets/graph-partitions.ts'
import type { DataVersionRow } from '../../../domain/partitions/data-versions.table.ts'
import type { StatusRow } from '../../../domain/partitions/partition-status.table.ts'
import type { LearnedFacts, WantedFacts } from '../../../domain/partitions/read-data.ts'
import type { SameData } from '../../../domain/partitions/same-data.ts'
import type { StaleAsset } from '../../../domain/partitions/stale-asset.ts'
import { ancestry, Staleness, type StatusCounts } from '../../../domain/partitions/staleness.ts'
import type { StatusColumns } from '../../../domain/partitions/status-columns.ts'
import type { StoredValueRow } from '../../../domain/partitions/stored-values.table.ts'
import { assert } from '../../../lib/assert.ts'
import type { Row } from '../../../model/table.ts'
import type { Span } from '../../../partitions/spans.ts'
import type { ColdRowsOf } from '../knowledge.ts'
import { type AssetToLoad, ColumnsCache } from './columns-cache.ts'
import { VersionsCache } from './versions-cache.ts'

export interface StatusSource {
  readonly graph: () => RecordedGraph
  /** Which partitions there are now. */
  readonly partitions: () => GraphPartitions
  readonly rows: () => ColdRowsOf<StatusRow>
  readonly versions: () => ColdRowsOf<DataVersionRow>
  readonly values: () => ColdRowsOf<StoredValueRow>
  readonly now: () => number
  /** The key of an asset, and those it had before. */
  readonly keysOf: (assetKey: string) => readonly string[]
  /** When the definition of an asset was recorded, and whether its partitions were ever different. */
  readonly recorded: (assetKey: string) => Pick<Row<typeof assetDefinitions>, 'defined_at' | 'partitions_varied'> | undefined
}

/** The status of partitions at one moment. */
export interface StatusMoment {
  readonly graph: RecordedGraph
  readonly partitions: GraphPartitions
  readonly staleness: Staleness
  readonly rows: ColdRowsOf<StatusRow>
}

export interface KeptMoment extends StatusMoment {
  /** Identifies the state that it was computed from. */
  readonly mark: string
  readonly columns: ReadonlyMap<string, StatusColumns>
  readonly loaded: ReadonlyMap<string, AssetToLoad>
  readonly counts: Map<string, StatusCounts>
}

/** The event loop gets a turn after this many milliseconds. */
const TURN_MS = 8
const FIRST_CHUNK = 2_048

/** Staleness as of now, computed again only when something that it depends on has changed. */
export class CurrentStaleness {
  readonly #source: StatusSource
  readonly #cache: ColumnsCache
  readonly #versions: VersionsCache
  /** The last few answers, by their question. */
  readonly #kept = new Map<string, KeptMoment>()

  constructor(source: StatusSource) {
    this.#source = source
    this.#cache = new ColumnsCache(source.rows)
    this.#versions = new VersionsCache(source.versions)
  }

  async of(assets: readonly string[]): Promise<KeptMoment> {
    const graph = this.#source.graph()
    const partitions = this.#source.partitions()
    const nowMs = this.#source.now()
    const needed = ancestry(graph, assets)
    const above = new Set(needed.flatMap((key) => partitions.links(key).map(({ upstream }) => upstream)))
    const toLoad = needed.map((key) => ({
      key,
      times: {
        made: above.has(key) || ageMatters(graph, key),
        inputs: partitions.links(key).length > 0,
      },
      keys: this.#source.keysOf(key),
      set: partitions.of(key),
      onlyItsKeys: this.#source.recorded(key)?.partitions_varied === false,
    }))
    const columns = await this.#cache.load(toLoad)
    const asked = assets.join('\0')
    const mark = markOf(graph, columns, nowMs)
    const known = this.#kept.get(asked)
    // Replaced columns may have the same version number and other contents.
    const isSame = known?.mark === mark && [...columns].every(([key, own]) => known.columns.get(key) === own)
    if (isSame && (await this.#areCurrent(known))) return known
    const loaded = (key: string): StatusColumns => {
      const own = columns.get(key)
      assert(own !== undefined, `the status of ${key} was not loaded`)
      return own
    }
    const staleness = new Staleness({ graph, partitions, columns: loaded, nowMs })
    staleness.prepare(assets)
    const kept = {
      graph,
      partitions,
      staleness,
      rows: this.#source.rows(),
      mark,
      columns,
      loaded: new Map(toLoad.map((asset) => [asset.key, asset])),
      counts: new Map(),
    }
    this.#kept.delete(asked)
    this.#kept.set(asked, kept)
    for (const [oldest] of this.#kept) {
      if (this.#kept.size <= MAX_QUESTIONS) break
      this.#kept.delete(oldest)
    }
    return kept
  }

  /** Computes the staleness of a span, with everything that it takes to be sure. Afterwards the span is known. */
  async workOut(moment: KeptMoment, asset: StaleAsset, span: Span): Promise<void> {
    const { staleness } = moment
    for (;;) {
      staleness.workOut(asset, span)
      const { wanted } = staleness
      if (wanted === undefined) return
      staleness.learn(await this.#find(moment, wanted))
      moment.counts.clear()
    }
  }

  async #find(moment: KeptMoment, wanted: WantedFacts): Promise<LearnedFacts> {
    const versions = new Map<string, SameData>()
    for (const key of wanted.versions) versions.set(key, await this.#versionsOf(moment, key))
    const undated = wanted.made.map((key) => toLoad(moment, key))
    const made = await this.#cache.load(undated.map((asset) => ({ ...asset, times: { ...asset.times, made: true } })))
    return { versions, made }
  }

  #versionsOf(moment: KeptMoment, key: string): Promise<SameData> {
    const columns = moment.columns.get(key)
    assert(columns !== undefined, `the status of ${key} was not loaded`)
    return this.#versions.load(toLoad(moment, key), columns)
  }

  /** A materialization that was reported late may change what earlier ones mean, and nothing else. */
  async #areCurrent(moment: KeptMoment): Promise<boolean> {
    for (const [key, same] of moment.staleness.versions) if ((await this.#versionsOf(moment, key)) !== same) return false
    return true
  }

  /** Computes a span piece by piece, so that a million partitions do not block the process. */
  async *inTurns(moment: KeptMoment, asset: StaleAsset, from: number): AsyncGenerator<Span> {
    const { count } = asset.set
    let size = FIRST_CHUNK
    for (let start = from; start < count; ) {
      const span = { from: start, to: Math.min(start + size, count) - 1 }
      const began = performance.now()
      await this.workOut(moment, asset, span)
      yield span
      const took = performance.now() - began
      size = took < TURN_MS / 2 ? size * 2 : took > TURN_MS ? Math.max(64, size >>> 1) : size
      start = span.to + 1
      if (start < count) await pause()
    }
  }
}

function toLoad({ loaded }: KeptMoment, key: string): AssetToLoad {
  const asset = loaded.get(key)
  assert(asset !== undefined, `${key} is no part of this question`)
  return asset
}

const MAX_QUESTIONS = 8

/** True if a partition of this asset becomes stale with time. */
function ageMatters({ graph }: RecordedGraph, assetKey: string): boolean {
  const { freshness } = graph.assets.get(assetKey)?.policies ?? {}
  return freshness !== undefined
}

/** Stays the same as long as nothing changes that an answer depends on. */
function markOf(graph: RecordedGraph, columns: ReadonlyMap<string, StatusColumns>, nowMs: number): string {
  let mark = graph.version
  let ages = false
  for (const [key, { version: columnsVersion, set }] of columns) {
    mark += `\0${key}\0${columnsVersion}\0${set.count}`
    ages ||= ageMatters(graph, key)
  }
  return ages ? `${mark}\0${nowMs}` : mark
}
