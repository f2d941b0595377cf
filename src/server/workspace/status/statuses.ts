import { setImmediate as pause } from 'node:timers/promises'
import type {
  PartitionPage,
  PartitionQuery,
  PartitionStatus,
  PartitionSummary,
  Selections,
  StaleQuery,
  StatusApi,
  Why,
} from '../../../api/status-contract.ts'
import type { StoredOutput } from '../../../contract/stored-output.ts'
import { taskKey } from '../../../domain/assets/graph-partitions.ts'
import { explain } from '../../../domain/partitions/explain.ts'
import { isReadable, madeIn, type StatusRow } from '../../../domain/partitions/partition-status.table.ts'
import type { StaleAsset } from '../../../domain/partitions/stale-asset.ts'
import { ancestry, CAUSES, type Staleness } from '../../../domain/partitions/staleness.ts'
import { causeNames, type ReasonToMake } from '../../../domain/partitions/status-names.ts'
import { type StoredValueRow, valueMadeIn } from '../../../domain/partitions/stored-values.table.ts'
import { parsePartitions } from '../../../domain/planning/parse-partitions.ts'
import { knownAsset, selectedAssets } from '../../../domain/selection/selected-assets.ts'
import { assert } from '../../../lib/assert.ts'
import { countWhile } from '../../../lib/collections/binary-search.ts'
import { ServoError } from '../../../lib/error.ts'
import { toIso } from '../../../lib/time.ts'
import { canonicalKey } from '../../../partitions/definition.ts'
import { allOf, spansInSet } from '../../../partitions/key-range.ts'
import { positionIn } from '../../../partitions/partition-set.ts'
import { Neighbours, type Spans, spans } from '../../../partitions/spans.ts'
import { joinedStatus } from '../../leader/joined-status.ts'
import { refuseRemoved } from '../../leader/retention/removed-value.ts'
import type { ColdRowsOf } from '../knowledge.ts'
import { CurrentStaleness, type KeptMoment, type StatusSource } from './current-staleness.ts'
import { readCursor, writeCursor } from './page-cursor.ts'

/** The event loop gets a turn after this many partitions. */
const PAUSE_AFTER = 4_096
/** Partitions of an asset whose status is looked at one by one: a minute for each of two centuries. */
const MAX_TOLD = 100_000_000

interface AssetPosition {
  readonly asset: StaleAsset
  readonly position: number
}

/** Finds the positions of an asset that belong on a page, beginning after `after`. */
type Walk = (asset: StaleAsset, after: number | undefined) => AsyncIterable<number>

/** Answers questions about the status of partitions and its causes. */
export class Statuses implements StatusApi {
  readonly #options: StatusSource
  readonly #current: CurrentStaleness

  constructor(options: StatusSource) {
    this.#options = options
    this.#current = new CurrentStaleness(options)
  }

  async list(query: PartitionQuery): Promise<PartitionPage> {
    const keys = this.#assets(query.select)
    const current = this.#current
    const moment = await current.of(keys)
    return await this.#page(keys, query, moment, async function* (asset, after) {
      const { set } = asset
      const ranges = query.partition === undefined ? [allOf(set)] : parsePartitions(set, query.partition)
      const wanted = spans(ranges.flatMap((range) => [...spansInSet(range)]))
      const isNewest = query.order === 'newest'
      const step = isNewest ? -1 : 1
      const upTo = (position: number): number => countWhile(wanted.count, (i) => wanted.at(i) <= position)
      // The first position after the end of the page before, in this order.
      const first = isNewest ? upTo((after ?? set.count) - 1) - 1 : upTo(after ?? -1)
      for (let i = first; i >= 0 && i < wanted.count; i += step) {
        const at = wanted.at(i)
        const { status } = query
        if (status === 'LAST_ATTEMPT_FAILED') {
          if (asset.columns.hasFailedLast(at)) yield at
        } else {
          if (status !== undefined) await current.workOut(moment, asset, { from: at, to: at })
          if (status === undefined || moment.staleness.display(asset, at) === status) yield at
        }
        if (i % PAUSE_AFTER === 0) await pause()
      }
    })
  }

  async stale(query: StaleQuery): Promise<PartitionPage> {
    const keys = this.#assets(query.select)
    const current = this.#current
    const moment = await current.of(keys)
    const bits = query.cause === undefined ? -1 : CAUSES[query.cause]
    const { staleness } = moment
    return await this.#page(keys, query, moment, async function* (asset, after) {
      for await (const span of current.inTurns(moment, asset, after === undefined ? 0 : after + 1)) {
        for (const at of staleness.staleIn(asset, span)) if (bits < 0 || staleness.causes(asset, at) & bits) yield at
      }
    })
  }

  async summaries(select: Selections): Promise<readonly PartitionSummary[]> {
    const keys = this.#assets(select)
    const moment = await this.#current.of(keys)
    const { staleness, counts } = moment
    const found: PartitionSummary[] = []
    for (const key of keys) {
      const asset = staleness.asset(key)
      const { set } = asset
      let counted = counts.get(key)
      if (counted === undefined) {
        if (asset.links.length > 0) for await (const _ of this.#current.inTurns(moment, asset, 0));
        counted = staleness.count(asset)
        counts.set(key, counted)
      }
      found.push({
        asset_key: key,
        partitions: set.count,
        first: set.count > 0 ? set.at(0) : null,
        last: set.count > 0 ? set.at(set.count - 1) : null,
        statuses: counted.statuses,
        causes: counted.causes,
        stale_by_upstream: counted.staleByUpstream,
        last_attempt_failed: counted.lastAttemptFailed,
      })
    }
    return found
  }

  /** The partitions whose last attempt failed: how many, and the newest of them. */
  async failed(assetKey: string, most: number): Promise<{ count: number; newest: readonly PartitionStatus[] }> {
    const moment = await this.#current.of([assetKey])
    const asset = moment.staleness.asset(assetKey)
    const newest: AssetPosition[] = []
    let count = 0
    for (let position = asset.set.count - 1; position >= 0; position--) {
      if (asset.columns.hasFailedLast(position) && count++ < most) newest.push({ asset, position })
      if (position % PAUSE_AFTER === 0) await pause()
    }
    return { count, newest: await this.#shown(moment, newest) }
  }

  async why(assetKey: string, partition: string | undefined): Promise<Why> {
    const { asset_key: key } = knownAsset(this.#options.graph().graph, assetKey)
    const moment = await this.#current.of([key])
    const asset = moment.staleness.asset(key)
    const position = positionOf(asset, partition)
    const [status] = await this.#shown(moment, [{ asset, position }])
    assert(status !== undefined, 'what was asked for is shown')
    const because = explain(key, position, {
      ...moment,
      definedAt: (assetKey) => this.#options.recorded(assetKey)?.defined_at ?? null,
    })
    return {
      ...status,
      because: because.map((each) => ({ ...each, since: each.since === null ? null : toIso(each.since) })),
    }
  }

  /** Why each of these partitions should be made; an empty list for one that is as it should be. */
  async reasons(chosen: ReadonlyMap<string, ReadonlySet<string>>): Promise<ReasonsByPartition> {
    const moment = await this.#current.of([...chosen.keys()])
    const { staleness } = moment
    const found = new Map<string, Map<string, readonly ReasonToMake[]>>()
    for (const [key, partitions] of chosen) {
      const asset = staleness.asset(key)
      const positions = [...partitions].map((partition) => positionIn(asset.set, partition)).sort((a, b) => a - b)
      for await (const { to } of this.#current.inTurns(moment, asset, positions[0] ?? asset.set.count))
        if (to >= (positions.at(-1) ?? 0)) break
      found.set(key, new Map(positions.map((at) => [asset.set.at(at), reasonsAt(staleness, asset, at)])))
    }
    return found
  }

  /** Those of these positions that are missing, stale, or failed in their last attempt. */
  async positionsOf(
    chosen: ReadonlyMap<string, Spans>,
    state: 'missing' | 'failed' | 'stale',
  ): Promise<ReadonlyMap<string, Spans>> {
    const blind = [...chosen.keys()].find((key) => !this.canTell(key))
    if (blind !== undefined) throw tooManyToTell(blind)
    const moment = await this.#current.of([...chosen.keys()])
    const { staleness } = moment
    const found = new Map<string, Spans>()
    for (const [key, asked] of chosen) {
      const asset = staleness.asset(key)
      const { columns } = asset
      const positions = new Neighbours()
      if (asked.count > 0 && state === 'stale') {
        const last = asked.at(asked.count - 1)
        for await (const span of this.#current.inTurns(moment, asset, asked.at(0))) {
          for (const at of staleness.staleIn(asset, span)) if (asked.has(at)) positions.add(at)
          if (span.to >= last) break
        }
      } else if (state !== 'stale') {
        const is = state === 'missing' ? (at: number) => !columns.isMade(at) : (at: number) => columns.hasFailedLast(at)
        let looked = 0
        for (const { from, to } of asked.list) {
          for (let at = from; at <= to; at++) {
            if (is(at)) positions.add(at)
            if (++looked % PAUSE_AFTER === 0) await pause()
          }
        }
      }
      found.set(key, spans(positions.list))
    }
    return found
  }

  /** True if the status of single partitions of this asset can be asked for: a byte or more is kept for each, and for each of those above it. */
  canTell(assetKey: string): boolean {
    const partitions = this.#options.partitions()
    return ancestry(this.#options.graph(), [assetKey]).every((key) => partitions.of(key).count <= MAX_TOLD)
  }

  #assets(select: Selections): readonly string[] {
    return selectedAssets(this.#options.graph().graph, [select ?? []].flat())
  }

  async #page(
    keys: readonly string[],
    { limit, cursor, values }: { limit: number; cursor?: string | undefined; values?: boolean | undefined },
    moment: KeptMoment,
    walk: Walk,
  ): Promise<PartitionPage> {
    const after = cursor === undefined ? undefined : readCursor(cursor)
    const places: AssetPosition[] = []
    let isMore = false
    for (const key of keys) {
      if (after !== undefined && key < after.asset) continue
      const asset = moment.staleness.asset(key)
      const from = after?.asset === key ? asset.set.positionOf(after.partition) : undefined
      for await (const position of walk(asset, from)) {
        isMore = places.length === limit
        if (isMore) break
        places.push({ asset, position })
      }
      if (isMore) break
    }
    const shown = await this.#shown(moment, places)
    const partitions = values ? await this.#withValues(moment, places, shown) : shown
    const last = partitions.at(-1)
    const next_cursor = isMore && last ? writeCursor({ asset: last.asset_key, partition: last.partition_key }) : null
    return { partitions, next_cursor }
  }

  /** The row of each position, joined with rows under former keys of its asset. */
  async #rowsOf(rows: ColdRowsOf<StatusRow>, places: readonly AssetPosition[]): Promise<(StatusRow | undefined)[]> {
    const keys = places.map(({ asset, position }) =>
      this.#options.keysOf(asset.key).map((name) => [name, asset.set.at(position)]),
    )
    const found = (await rows.lookup(keys.flat())).values()
    return keys.map((each) => joinedStatus([...found.take(each.length)]))
  }

  /** The same partitions with how their values are stored. Of two materializations in this moment, the newer may be shown. */
  async #withValues(
    { rows }: KeptMoment,
    places: readonly AssetPosition[],
    shown: readonly PartitionStatus[],
  ): Promise<PartitionStatus[]> {
    const statuses = await this.#rowsOf(rows, places)
    const keys = places.map(({ asset, position }) =>
      this.#options.keysOf(asset.key).map((name) => [name, asset.set.at(position)]),
    )
    const found = (await this.#options.values().lookup(keys.flat())).values()
    return shown.map((status, i) => {
      const [row, stored] = [statuses[i], [...found.take(keys[i]?.length ?? 0)]]
      return { ...status, stored: storedOf(row, stored) }
    })
  }

  async #shown(moment: KeptMoment, places: readonly AssetPosition[]): Promise<PartitionStatus[]> {
    const { staleness, rows } = moment
    const found = await this.#rowsOf(rows, places)
    for (const { asset, position } of places) await this.#current.workOut(moment, asset, { from: position, to: position })
    return places.map(({ asset, position }, i) => {
      const row = found[i]
      const causes = staleness.causes(asset, position)
      return {
        asset_key: asset.key,
        partition_key: asset.set.at(position),
        status: staleness.display(asset, position),
        is_stale: staleness.isStale(asset, position),
        causes: causeNames.filter((cause) => causes & CAUSES[cause]),
        last_materialization_at: iso(row?.last_materialization_at),
        last_materialization_run_id: row?.last_materialization_run_id ?? null,
        last_materialization_path: row?.last_materialization_path ?? null,
        last_materialization_code_version: row?.last_materialization_code_version ?? null,
        last_materialization_data_version: row?.last_materialization_data_version ?? null,
        last_attempt_at: iso(row?.last_attempt_at),
        last_attempt_outcome: row?.last_attempt_outcome ?? null,
        last_attempt_run_id: row?.last_attempt_run_id ?? null,
        wiped_at: iso(row?.wiped_at),
      }
    })
  }
}

function storedOf(row: StatusRow | undefined, known: readonly (StoredValueRow | undefined)[]): StoredOutput | null {
  if (!isReadable(row)) return null
  const made = madeIn(row)
  const its = known.find(
    (each) => each && (each.materialization_id === row.last_materialization_id || valueMadeIn(each) > made),
  )
  if (its !== undefined) refuseRemoved(its, taskKey(its.asset_key, its.partition_key))
  if (its !== undefined) return { path: its.path, value: its.value, bytes: its.bytes, sha256: its.sha256 }
  const path = row.last_materialization_path
  return path === null ? null : { path, value: null, bytes: null, sha256: null }
}

/** By asset, then by partition. */
export type ReasonsByPartition = ReadonlyMap<string, ReadonlyMap<string, readonly ReasonToMake[]>>

function reasonsAt(staleness: Staleness, asset: StaleAsset, at: number): readonly ReasonToMake[] {
  const causes = staleness.causes(asset, at)
  const reasons: ReasonToMake[] = causeNames.filter((cause) => causes & CAUSES[cause])
  if (reasons.length === 0 && staleness.isStale(asset, at)) reasons.push('upstream_stale')
  if (asset.columns.hasFailedLast(at)) reasons.push('last_attempt_failed')
  return reasons
}

const tooManyToTell = (key: string): ServoError =>
  new ServoError(
    'invalid',
    'too_many_partitions',
    `${key}, or an asset that it is made from, has more than ${MAX_TOLD} partitions, so nobody can tell which of them are missing, stale or failed`,
    { hint: 'Name the partitions by a range, by keys or by a filter.' },
  )

const iso = (ms: number | null | undefined): string | null => (ms === null || ms === undefined ? null : toIso(ms))

function positionOf({ key, set }: StaleAsset, partition: string | undefined): number {
  if (set.definition === undefined) {
    if (partition === undefined) return 0
    throw new ServoError('invalid', 'no_partitions', `${key} has no partitions`, {
      hint: `Request ${key} without a partition.`,
    })
  }
  if (partition !== undefined) return positionIn(set, canonicalKey(set.definition, partition))
  throw new ServoError('invalid', 'partition_wanted', `${key} has partitions: which one?`, {
    hint: set.count === 0 ? 'None exists yet.' : `Name one of ${set.count}, from ${set.at(0)} to ${set.at(set.count - 1)}.`,
  })
}
