import type { Columns } from '../../model/column.ts'
import type { NewEvent } from '../../model/event.ts'
import type { KeyPart, Rows } from '../../model/rows.ts'
import type { RowOf, Table } from '../../model/table.ts'
import type { CurrentGraph } from '../leader/current-graph.ts'
import type { Orchestrator } from '../leader/orchestrator.ts'
import type { Sql } from './run-reader.ts'

/** What became of facts that were handed in. */
export interface Recorded {
  /** The first of them that is written; null when none had to be. */
  readonly event_id: string | null
  /** How many were not known before. */
  readonly news: number
}

/** Everything that questions about assets are answered from, whether a server runs or not. */
export interface KnownAssets {
  readonly graph: CurrentGraph
  rows(): Rows
  lookup<C extends Columns>(table: Table<C>, ...key: KeyPart[]): Promise<RowOf<C> | undefined>
  readonly sql: Sql
  now(): number
  /** A new id for a request that has none of its own. */
  mintId(): string
  submit(events: readonly NewEvent[]): Promise<Recorded>
}

/** What the process that folds knows. */
export function knownTo(orchestrator: Orchestrator, also: Pick<KnownAssets, 'sql' | 'now' | 'mintId'>): KnownAssets {
  return {
    ...also,
    graph: orchestrator.graph,
    rows: () => orchestrator.loop.compactor.state,
    lookup: (table, ...key) => orchestrator.loop.compactor.lookup(table, ...key),
    async submit(facts) {
      const { events, verdicts } = await orchestrator.submit(facts)
      const news = events.filter((_, i) => verdicts[i]?.kind === 'applied')
      return { event_id: news[0]?.event_id ?? null, news: news.length }
    },
  }
}
