import type { Room } from '../../../adapters/system/disk-room.ts'
import type {
  CollectBody,
  Collected,
  PurgeBody,
  Purged,
  RemovedBytes,
  RetentionApi,
  StorageRoom,
} from '../../../api/retention-contract.ts'
import { keysOfAsset } from '../../../domain/assets/former-keys.ts'
import { isReadable, madeIn, partitionStatus, wipedIn } from '../../../domain/partitions/partition-status.table.ts'
import { partitionsOfAsset } from '../../../domain/planning/partitions-of-asset.ts'
import { type ValueVersionRow, valueVersions } from '../../../domain/retention/value-versions.table.ts'
import { knownAsset } from '../../../domain/selection/selected-assets.ts'
import { toIso } from '../../../lib/time.ts'
import { joinedStatus } from '../../leader/joined-status.ts'
import { type Expired, nextExpired } from '../../leader/retention/expired-values.ts'
import { deletePending, removeValues } from '../../leader/retention/remove-values.ts'
import { retainedAssets } from '../../leader/retention/retained-assets.ts'
import { advanced } from '../../leader/retention/retention.ts'
import { valuesInUse } from '../../leader/retention/values-in-use.ts'
import type { Knowledge } from '../knowledge.ts'
import { badCursor } from '../page.ts'

/** Steps and rows of one request: a second or so. Whoever wants more asks again with the cursor. */
const STEPS = 10
const PAGE = 5_000

/** Removes stored values because a user asks for it. */
export class Removals implements RetentionApi {
  readonly #known: Knowledge

  readonly #room: (() => Promise<Room>) | undefined

  constructor(known: Knowledge, room?: () => Promise<Room>) {
    this.#known = known
    this.#room = room
  }

  async storage(): Promise<StorageRoom> {
    return { disk: (await this.#room?.()) ?? null }
  }

  /** Just as it happens in the background, but at once. A dry run writes nothing, so only the cursor says how far it has come. */
  async collect({ dry_run = false, cursor }: CollectBody, user: string): Promise<Collected> {
    const known = this.#known
    const assets = retainedAssets(known)
    const from = cursorOf(cursor)
    if (!dry_run && from === undefined) await deletePending(known)
    const values: ValueVersionRow[] = []
    let steps = 0
    for (const asset of assets) {
      if (from !== undefined && asset.key < from.asset) continue
      let after = from?.asset === asset.key ? from.after : asset.after
      for (let next: Expired['next'] = 'more'; next === 'more'; ) {
        if (steps++ === STEPS)
          return { values: shown(values), retained_assets: assets.length, next_cursor: cursorText({ asset: asset.key, after }) }
        const found = await nextExpired(known, { ...asset, after }, { now: known.now(), graceMs: 0 })
        if (!dry_run && found.passed !== after) {
          const passed = [advanced(known, asset.key, asset.rule, found.passed)]
          await removeValues(known, { values: found.values, reason: 'expired', by: user, with: passed })
        }
        values.push(...found.values)
        after = found.passed
        next = found.next
      }
    }
    return { values: shown(values), retained_assets: assets.length, next_cursor: null }
  }

  async purge(assetKey: string, body: PurgeBody, user: string): Promise<Purged> {
    const known = this.#known
    knownAsset(known.graph.get().graph, assetKey)
    const keys = partitionsOfAsset(assetKey, body.partitions, known.graph.partitions())
    const names = keysOfAsset(known.rows(), assetKey)
    const cursor = cursorOf(body.cursor) ?? { asset: names[0] ?? assetKey, after: '' }
    const page = await this.#page(cursor)
    const wanted = new Set(keys)
    // All partitions are also those that the asset no longer has.
    const isAsked = (key: string): boolean => wanted.has(key) || body.partitions?.includes('*') === true
    const there = page.rows.filter((row) => row.removed_at === null && row.materialized_at !== null)
    // A value that was made for several partitions goes if all of them are asked for.
    const asked = [...Map.groupBy(there, ({ event_id }) => event_id).values()].filter(
      (rows) => rows.length === (rows[0]?.partitions ?? 1) && rows.every(({ partition_key }) => isAsked(partition_key)),
    )
    const { values, inUse } = await this.#notCounting(asked, names)
    if (!body.dry_run) await removeValues(known, { values, reason: 'purged', by: user, note: body.reason })
    const rest = names[names.indexOf(cursor.asset) + 1]
    const next = page.next ?? (rest === undefined ? undefined : { asset: rest, after: '' })
    return {
      asset_key: assetKey,
      partitions: { count: keys.length, first: keys[0] ?? null, last: keys.at(-1) ?? null },
      values: shown(values),
      in_use: inUse,
      next_cursor: next === undefined ? null : cursorText(next),
    }
  }

  /** Whole events of an asset, under one of its names. */
  async #page({ asset, after }: Cursor, limit = PAGE): Promise<{ rows: ValueVersionRow[]; next?: Cursor }> {
    const rows = await this.#known.coldRows(valueVersions).after([asset, after], limit)
    if (rows.length < limit) return { rows }
    const last = rows.at(-1)?.event_id ?? ''
    const whole = rows.filter(({ event_id }) => event_id !== last)
    const passed = whole.at(-1)?.event_id
    return passed === undefined
      ? await this.#page({ asset, after }, limit * 4)
      : { rows: whole, next: { asset, after: passed } }
  }

  /** Values that do not count: they were wiped, or newer ones were made, or a check refused them. */
  async #notCounting(made: readonly (readonly ValueVersionRow[])[], names: readonly string[]) {
    const { since, made: ofRuns } = valuesInUse(this.#known.rows())
    const values: ValueVersionRow[] = []
    let inUse = 0
    for (const rows of made) {
      const states = await Promise.all(
        rows.map(async ({ partition_key, event_id, materialization_id }) => {
          const keys = names.map((name) => [name, partition_key])
          const status = joinedStatus(await this.#known.coldRows(partitionStatus).lookup(keys))
          if (isReadable(status) && status.last_materialization_event_id === event_id) return 'counts'
          // An attempt that began before the value was replaced or wiped may have it as an input.
          const changedIn = status === undefined ? 0 : Math.max(madeIn(status), wipedIn(status))
          return changedIn >= since || ofRuns.has(materialization_id ?? '') ? 'in use' : 'does not count'
        }),
      )
      if (states.includes('counts')) continue
      const [value] = rows
      if (states.includes('in use')) inUse += 1
      else if (value !== undefined) values.push(value)
    }
    return { values, inUse }
  }
}

const shown = (values: readonly ValueVersionRow[]): RemovedBytes[] =>
  values.map(({ asset_key, partition_key, materialization_id, materialized_at, path, bytes }) => ({
    asset_key,
    partition_key,
    materialization_id,
    materialized_at: materialized_at === null ? null : toIso(materialized_at),
    path,
    bytes: bytes ?? 0,
  }))

interface Cursor {
  readonly asset: string
  readonly after: string
}

const cursorText = ({ asset, after }: Cursor): string => Buffer.from(JSON.stringify([asset, after])).toString('base64url')

function cursorOf(text: string | undefined): Cursor | undefined {
  if (text === undefined) return undefined
  try {
    const [asset, after] = JSON.parse(Buffer.from(text, 'base64url').toString())
    if (typeof asset === 'string' && typeof after === 'string') return { asset, after }
  } catch {
    // Refused below.
  }
  throw badCursor()
}
