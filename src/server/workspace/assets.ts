import type {
  AcceptedFacts,
  AcceptedKeys,
  AssetDetail,
  AssetLink,
  AssetPage,
  AssetSummary,
  AssetsApi,
  GraphView,
  KeyPage,
  KeysBody,
  ReportBody,
  WipeBody,
  WireStatus,
} from '../../api/asset-contract.ts'
import type { PageQuery } from '../../api/request/list-query.ts'
import { wireRow } from '../../api/wire-row.ts'
import type { AssetDefinition } from '../../contract/project-manifest.ts'
import { assetDefinitions } from '../../domain/assets/asset-definitions.table.ts'
import { keysOfAsset } from '../../domain/assets/former-keys.ts'
import type { GraphPartitions } from '../../domain/assets/graph-partitions.ts'
import { isWiped, partitionStatus } from '../../domain/partitions/partition-status.table.ts'
import { knownAsset, selectedAssets } from '../../domain/selection/selected-assets.ts'
import { assert } from '../../lib/assert.ts'
import { toIso } from '../../lib/time.ts'
import { mappingInWords, partitionsInWords } from '../../partitions/in-words.ts'
import type { PartitionSet } from '../../partitions/partition-set.ts'
import { joinedStatus } from '../leader/joined-status.ts'
import { recordReport, recordWipe } from './asset-facts.ts'
import { type Knowledge, lookup } from './knowledge.ts'
import { lastRunOf } from './last-run.ts'
import { pageOf } from './page.ts'
import { changePartitionKeys, partitionKeysPage } from './partition-keys.ts'
import { failedAttempts, lastChecksOf } from './status/last-checks.ts'
import type { Statuses } from './status/statuses.ts'

/** As many as one reads; `GET /partitions` has them all. */
const SHOWN_FAILED = 5

/** Answers questions about assets, and records the reports of users and other systems about them. */
export class Assets implements AssetsApi {
  readonly #known: Knowledge
  readonly #statuses: Pick<Statuses, 'failed'>

  constructor(known: Knowledge, statuses: Pick<Statuses, 'failed'>) {
    this.#known = known
    this.#statuses = statuses
  }

  async list({ select, ...query }: PageQuery & { select: readonly string[] }): Promise<AssetPage> {
    const { graph } = this.#known.graph.get()
    const selected = selectedAssets(graph, select)
    const { names, next_cursor } = pageOf(selected, query)
    const summary = this.#summaries()
    return { assets: names.map(summary), total: selected.length, next_cursor }
  }

  async graph(select: readonly string[]): Promise<GraphView> {
    const { graph, version } = this.#known.graph.get()
    const selected = new Set(selectedAssets(graph, select))
    const summary = this.#summaries()
    const order = graph.order.filter((key) => selected.has(key))
    const edges = order.flatMap((to) =>
      graph
        .upstream(to)
        .filter((from) => selected.has(from))
        .map((from) => ({ from, to })),
    )
    return { graph_version: version, nodes: order.map(summary), edges }
  }

  async get(assetKey: string): Promise<AssetDetail> {
    const { graph } = this.#known.graph.get()
    const definition = knownAsset(graph, assetKey)
    const recorded = this.#known.rows().hot(assetDefinitions).get(assetKey)
    assert(recorded !== undefined, `${assetKey} is in the graph and not in its table`)
    const status = definition.partitions ? undefined : await this.#statusOf(assetKey)
    const last_run = await lastRunOf(this.#known, assetKey, status)
    const wire = status === undefined ? null : wireRow(partitionStatus, status)
    return {
      asset: this.#summaries()(assetKey),
      definition,
      asset_id: recorded.asset_id,
      defined_at: toIso(recorded.defined_at),
      graph_version: recorded.graph_version,
      upstream: this.#links(definition),
      downstream: graph.downstream(assetKey),
      status: wire,
      wiped: status !== undefined && isWiped(status),
      last_run,
      last_checks:
        definition.kind !== 'command' && definition.checks.length === 0
          ? null
          : await lastChecksOf(this.#known, assetKey, last_run?.run_id, wire),
      last_failure: wire?.last_attempt_outcome === 'FAILED' ? await this.#failure(assetKey, wire) : null,
      failed_partitions: definition.partitions ? await this.#failed(assetKey) : null,
    }
  }

  report(assetKey: string, body: ReportBody, user: string): Promise<AcceptedFacts> {
    return recordReport(this.#known, assetKey, body, user)
  }

  wipe(assetKey: string, body: WipeBody, user: string): Promise<AcceptedFacts> {
    return recordWipe(this.#known, assetKey, body, user)
  }

  changeKeys(setName: string, body: KeysBody, user: string): Promise<AcceptedKeys> {
    return changePartitionKeys(this.#known, setName, body, user)
  }

  async keys(setName: string, query: PageQuery): Promise<KeyPage> {
    return partitionKeysPage(this.#known, setName, query)
  }

  async #failure(assetKey: string, status: WireStatus): Promise<AssetDetail['last_failure']> {
    const [failure = null] = await failedAttempts(this.#known, assetKey, [status])
    return failure
  }

  async #failed(assetKey: string): Promise<AssetDetail['failed_partitions']> {
    const { count, newest } = await this.#statuses.failed(assetKey, SHOWN_FAILED)
    return { count, newest: await failedAttempts(this.#known, assetKey, newest) }
  }

  /** The status of an asset that is made as a whole, joined over every key that it has had. */
  async #statusOf(assetKey: string) {
    const keys = keysOfAsset(this.#known.rows(), assetKey)
    return joinedStatus(await Promise.all(keys.map((key) => lookup(this.#known, partitionStatus, key, ''))))
  }

  /** Summaries as of one moment; assets with equal partitions share the count. */
  #summaries(): (assetKey: string) => AssetSummary {
    const { graph } = this.#known.graph.get()
    const partitions = this.#known.graph.partitions()
    const known = new Map<PartitionSet, AssetSummary['partitions']>()
    return (assetKey) => {
      const { kind, group, description } = knownAsset(graph, assetKey)
      const set = partitions.of(assetKey)
      let summary = known.get(set)
      if (summary === undefined) {
        summary = partitionsOf(set)
        known.set(set, summary)
      }
      return {
        asset_key: assetKey,
        kind,
        group,
        description: description ?? null,
        partitions: summary,
        upstream: graph.upstream(assetKey).length,
        downstream: graph.downstream(assetKey).length,
      }
    }
  }

  #links({ asset_key, inputs, deps }: AssetDefinition): AssetLink[] {
    const { graph } = this.#known.graph.get()
    const partitions = this.#known.graph.partitions()
    const named = [
      ...Object.entries(inputs).map(([input, of]) => ({ input, ...of })),
      ...deps.map((dep) => ({ input: null, ...dep })),
    ]
    return named.map(({ input, asset_key: upstream, mapping }) => ({
      asset_key: upstream,
      input,
      mapping: mapping ?? null,
      words: graph.assets.has(upstream) ? linkInWords(partitions, asset_key, upstream, mapping) : null,
    }))
  }
}

function partitionsOf(set: PartitionSet): AssetSummary['partitions'] {
  const { definition, count } = set
  if (definition === undefined) return null
  const [first, last] = count === 0 ? [null, null] : [set.at(0), set.at(count - 1)]
  return { words: partitionsInWords(definition), count, first, last }
}

function linkInWords(partitions: GraphPartitions, assetKey: string, upstream: string, mapping: unknown): string | null {
  if (partitions.of(upstream).definition === undefined) return null
  return mappingInWords(partitions.mapping(assetKey, upstream, mapping))
}
