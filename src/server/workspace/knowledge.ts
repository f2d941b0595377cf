import type { State } from '../../engine/fold/state.ts'
import type { Submitted } from '../../engine/loop/loop.ts'
import type { Scope } from '../../engine/paths.ts'
import type { ColdRowsToRead } from '../../engine/sorted/cold-store.ts'
import type { Columns } from '../../model/column.ts'
import type { NewEvent } from '../../model/event.ts'
import type { KeyPart } from '../../model/rows.ts'
import { idempotencyKeys } from '../../model/system-tables.ts'
import type { RowOf, Table } from '../../model/table.ts'
import type { ObjectStore } from '../../ports/object-store.ts'
import type { Components } from '../components.ts'
import type { CurrentGraph } from '../leader/current-graph.ts'
import type { Readable } from '../leader/durable-state.ts'
import type { Sql } from '../sql-rows.ts'

/** A cold table with the type of its rows. */
export interface ColdRowsOf<R> extends Omit<ColdRowsToRead, 'recent' | 'lookup'> {
  recent(): Iterable<R>
  lookup(keys: readonly KeyPart[][]): Promise<(R | undefined)[]>
}

/** Everything that questions about a workspace are answered from, and the way for commands. A reader has no such way. */
export interface Knowledge {
  readonly scope: Scope
  readonly store: ObjectStore
  readonly graph: CurrentGraph
  /** Rows of unfinished work. */
  rows(): State
  /** A cold table, including rows that are not published yet. */
  coldRows<C extends Columns>(table: Table<C>): ColdRowsOf<RowOf<C>>
  readonly sql: Sql
  now(): number
  /** Makes an id for a request without one. */
  mintId(): string
  /** Submits facts. A reader refuses. */
  submit(events: readonly NewEvent[]): Promise<Submitted>
}

/** The source of knowledge. `readable` is read anew each time, because a leader that recovered has other rows. */
export interface KnowledgeSource {
  readonly graph: CurrentGraph
  readonly readable: Readable
  submit(events: readonly NewEvent[]): Promise<Submitted>
}

export function knowledgeOf({ scope, store, sql, clock, ulid }: Components, source: KnowledgeSource): Knowledge {
  return {
    scope,
    store,
    sql,
    graph: source.graph,
    rows: () => source.readable.state,
    coldRows: (table) => coldRowsOf(source.readable, table),
    now: () => clock.now(),
    mintId: ulid,
    submit: (events) => source.submit(events),
  }
}

/** A cold table with typed rows. The engine is generic over tables, so the type is given here. */
export const coldRowsOf = <C extends Columns>(from: Pick<Readable, 'coldRows'>, table: Table<C>): ColdRowsOf<RowOf<C>> =>
  from.coldRows(table) as ColdRowsOf<RowOf<C>>

/** One cold row by its key. */
export async function lookup<C extends Columns>(
  known: Pick<Knowledge, 'coldRows'>,
  table: Table<C>,
  ...key: KeyPart[]
): Promise<RowOf<C> | undefined> {
  const [row] = await known.coldRows(table).lookup([key])
  return row
}

/** The outcome of recording facts. */
export interface Recorded {
  /** The first event that is new; null when none is. */
  readonly event_id: string | null
  /** The number of facts that were new. */
  readonly news: number
}

export async function record(known: Pick<Knowledge, 'submit'>, facts: readonly NewEvent[]): Promise<Recorded> {
  const { events, verdicts } = await known.submit(facts)
  const news = events.filter((_, i) => verdicts[i]?.kind === 'applied')
  return { event_id: news[0]?.event_id ?? null, news: news.length }
}

/** The event that recorded this fact when it was first reported; undefined if it is new. Such facts are remembered by their keys. */
export async function recordedBefore(
  known: Pick<Knowledge, 'coldRows'>,
  { definition, payload }: NewEvent,
): Promise<{ event_id: string; at: number } | undefined> {
  const parsed = definition.parse(payload)
  if (!parsed.success || definition.dedup !== 'key') return undefined
  const row = await lookup(known, idempotencyKeys, definition.idempotencyKey(parsed.data))
  return row === undefined ? undefined : { event_id: row.event_id, at: row.consumed_at }
}
