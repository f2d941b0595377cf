import type {
  BackfillDetail,
  BackfillPage,
  BackfillQuery,
  ChunkPage,
  ChunkQuery,
  WireBackfill,
  WireBackfillAsset,
  WireChunk,
} from '../../../api/automation/backfill-contract.ts'
import { wireRow } from '../../../api/wire-row.ts'
import { automationState, EVERYTHING } from '../../../domain/automation/automation-state.table.ts'
import { type BackfillAssetRow, backfillAssets } from '../../../domain/backfills/backfill-assets.table.ts'
import { backfillChunks, type ChunkRow } from '../../../domain/backfills/backfill-chunks.table.ts'
import { type BackfillRow, backfills } from '../../../domain/backfills/backfills.table.ts'
import { placeOfChunk, setOfStage } from '../../../domain/backfills/frozen-set.ts'
import { runs } from '../../../domain/runs/runs.table.ts'
import { heldBy } from '../../../domain/why/why-backfill.ts'
import { comesAfter, isAsked, type ListPlace, type ListQuery } from '../../../engine/history/list-history.ts'
import { ServoError } from '../../../lib/error.ts'
import { MINUTE_MS, toIso, toMs } from '../../../lib/time.ts'
import { historyIndex } from '../../../model/system-tables.ts'
import { unpackSpans } from '../../../partitions/spans.ts'
import { type Knowledge, lookup } from '../knowledge.ts'
import { cursorOf, placeOfCursor } from '../newest-page.ts'
import { badCursor } from '../page.ts'

/** A backfill with its assets, wherever it is. */
export interface FoundBackfill {
  readonly backfill: Readonly<BackfillRow>
  readonly assets: readonly Readonly<BackfillAssetRow>[]
}

/** The first characters of an id; a whole one has 26. */
const START = /^bf_[0-9a-z]{1,25}$/
/** As many as a message names. */
const AMBIGUOUS = 3

/** Chunks that are looked at to find some of one outcome. */
const CHUNKS_AT_ONCE = 1_000

/** Backfills as they are now: unfinished ones from memory, finished ones from history files. */
export class BackfillReader {
  readonly #known: Knowledge
  /** Whether this server plans chunks; undefined where no server answers. */
  readonly #isOn: boolean | undefined

  constructor(known: Knowledge, isOn: boolean | undefined) {
    this.#known = known
    this.#isOn = isOn
  }

  async list({ limit, cursor, status, asset, since, until }: BackfillQuery): Promise<BackfillPage> {
    const asked: ListQuery = {
      limit: limit + 1,
      after: cursor === undefined ? undefined : placeOfCursor(cursor),
      since: since === undefined ? undefined : toMs(since),
      until: until === undefined ? undefined : toMs(until),
      filters: { ...(status && { state: status }), ...(asset && { asset_selection: asset }) },
    }
    // Of one moment: a backfill that becomes history while the files are read is in memory here, and in none of these files.
    const history = this.#known.history()
    const unfinished = [...this.#known.rows().hot(backfills).all()].filter((row) =>
      isAsked(asked, placeOf(row), (column) => Object.entries(row).find(([name]) => name === column)?.[1]),
    )
    const found = [...unfinished, ...(await history.list(backfills, asked))]
    const sorted = found.sort((a, b) => (comesAfter(placeOf(a), placeOf(b)) ? -1 : 1))
    const last = sorted[limit - 1]
    return {
      backfills: sorted.slice(0, limit).map((row) => this.#shown(row)),
      next_cursor: last === undefined || sorted.length <= limit ? null : cursorOf(placeOf(last)),
    }
  }

  async get(idOrStart: string): Promise<BackfillDetail> {
    const { backfill, assets } = await this.find(await this.resolve(idOrStart))
    return { backfill: this.#shown(backfill), assets: assets.map(shownAsset) }
  }

  async chunks(backfillId: string, { limit, cursor, status, since, until }: ChunkQuery): Promise<ChunkPage> {
    const { backfill } = await this.find(backfillId)
    const chunks: WireChunk[] = []
    let index = cursor === undefined ? 0 : indexIn(cursor)
    for (; index < backfill.planned_chunks && chunks.length <= limit; index += CHUNKS_AT_ONCE) {
      const numbers = Array.from({ length: Math.min(CHUNKS_AT_ONCE, backfill.planned_chunks - index) }, (_, i) => index + i)
      const rows = await this.#known.coldRows(backfillChunks).lookup(numbers.map((number) => [backfill.backfill_id, number]))
      for (const row of rows) {
        if (row === undefined || chunks.length > limit || !isBetween(row.planned_at, since, until)) continue
        const chunk = this.#shownChunk(backfill, row)
        if (status === undefined || chunk.state === status) chunks.push(chunk)
      }
    }
    const more = chunks.length > limit ? chunks.pop() : undefined
    return { chunks, next_cursor: more === undefined ? null : Buffer.from(`${more.chunk_index}`).toString('base64url') }
  }

  /** The id of the only backfill that begins so; an id that is whole is taken as it is. */
  async resolve(idOrStart: string): Promise<string> {
    if (!START.test(idOrStart)) return idOrStart
    const found = new Set<string>()
    for (const { backfill_id } of this.#known.rows().hot(backfills).all())
      if (backfill_id.startsWith(idOrStart)) found.add(backfill_id)
    const ended = await this.#known.coldRows(historyIndex).startingWith(backfills.name, idOrStart, AMBIGUOUS)
    for (const id of ended) found.add(id)
    const [first, second] = found
    if (second === undefined) return first ?? idOrStart
    throw new ServoError('invalid', 'ambiguous_backfill', `several backfills start with ${idOrStart}`, {
      hint: `Write more characters: ${[...found].slice(0, AMBIGUOUS).join(', ')}`,
    })
  }

  /** The backfill of this id, which must exist. */
  async find(backfillId: string): Promise<FoundBackfill> {
    const rows = this.#known.rows()
    const hot = rows.hot(backfills).get(backfillId)
    if (hot !== undefined) return found(hot, [...rows.hot(backfillAssets).under(backfillId)])
    const history = this.#known.history()
    const place = await lookup(this.#known, historyIndex, backfills.name, backfillId)
    const [[backfill], assets] = await Promise.all([
      history.rowsOf(backfills, backfillId, place),
      history.rowsOf(backfillAssets, backfillId, place),
    ])
    if (backfill !== undefined) return found(backfill, assets)
    throw new ServoError('not_found', 'no_such_backfill', `backfill ${JSON.stringify(backfillId.slice(0, 60))} not found`, {
      hint: '`servo backfills list` lists the newest backfills.',
    })
  }

  #shown(row: Readonly<BackfillRow>): WireBackfill {
    const { change_requests: _, dynamic_keys: __, cancel_requests: ___, ...wire } = wireRow(backfills, row)
    const ended = row.succeeded_partitions + row.failed_partitions + row.skipped_partitions + row.cancelled_partitions
    const until = row.finished_at ?? this.#known.now()
    const perMs = ended / Math.max(1, until - row.created_at)
    const everything = this.#known.rows().hot(automationState).get(EVERYTHING)
    const held = heldBy(row, { isOn: this.#isOn, everything })
    const isGoing = row.state === 'RUNNING' && row.cancel_requested_at === null && ended > 0 && held === undefined
    return {
      ...wire,
      state: shownState(row),
      waits_for: held === undefined ? null : held.code === 'automation_off' ? 'automation_off' : 'automation_paused',
      partitions_per_minute: ended === 0 ? null : Math.round(perMs * MINUTE_MS * 10) / 10,
      expected_end: isGoing ? toIso(Math.round(this.#known.now() + (row.total_partitions - ended) / perMs)) : null,
    }
  }

  #shownChunk(backfill: Readonly<BackfillRow>, row: Readonly<ChunkRow>): WireChunk {
    const set = setOfStage(backfill, placeOfChunk(backfill, row.chunk_index).stage)
    const positions = unpackSpans(row.positions ?? [])
    const keyAt = (index: number): string | null =>
      set.definition === undefined || positions.count === 0 ? null : set.at(positions.at(index))
    const run = row.run_id === null ? undefined : this.#known.rows().hot(runs).get(row.run_id)
    const state = row.outcome ?? (run?.state === 'RUNNING' ? ('RUNNING' as const) : ('PLANNED' as const))
    return { ...wireRow(backfillChunks, row), state, first_key: keyAt(0), last_key: keyAt(positions.count - 1) }
  }
}

/** Its assets in graph order, whatever order they are kept in. */
function found(backfill: Readonly<BackfillRow>, assets: readonly Readonly<BackfillAssetRow>[]): FoundBackfill {
  const places = new Map(backfill.asset_selection.map((key, place) => [key, place]))
  const placeOf = ({ asset_key }: Readonly<BackfillAssetRow>): number => places.get(asset_key) ?? places.size
  return { backfill, assets: [...assets].sort((a, b) => placeOf(a) - placeOf(b)) }
}

/** Which partitions it has may be a long list, and nobody who looks at the progress asks for it. */
function shownAsset(row: Readonly<BackfillAssetRow>): WireBackfillAsset {
  const { positions: _, links: __, ...shown } = wireRow(backfillAssets, row)
  return shown
}

/** Failures while it is paused are shown as such. */
export const shownState = ({ state, failed_chunks }: Readonly<BackfillRow>): WireBackfill['state'] =>
  state === 'PAUSED' && failed_chunks > 0 ? 'PAUSED_WITH_FAILURES' : state

const isBetween = (at: number | null, since: string | undefined, until: string | undefined): boolean =>
  (since === undefined || (at !== null && at >= toMs(since))) && (until === undefined || (at !== null && at < toMs(until)))

const placeOf = ({ created_at, backfill_id }: Readonly<BackfillRow>): ListPlace => ({ at: created_at, id: backfill_id })

function indexIn(cursor: string): number {
  const text = Buffer.from(cursor, 'base64url').toString()
  if (!/^\d{1,10}$/.test(text)) throw badCursor()
  return Number(text)
}
