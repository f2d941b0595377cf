import type { ProjectManifest } from '../../contract/project-manifest.ts'
import type { Submitted } from '../../engine/loop/loop.ts'
import type { RecordedOrder } from '../../engine/manifest/recorded-order.ts'
import type { Scope } from '../../engine/paths.ts'
import type { NewEvent } from '../../model/event.ts'
import type { ObjectStore } from '../../ports/object-store.ts'
import type { Components } from '../components.ts'
import type { CurrentGraph } from '../leader/current-graph.ts'
import type { Readable } from '../leader/durable-state.ts'
import { type KnownRows, knownRows } from '../leader/known-rows.ts'
import type { Sql } from '../sql-rows.ts'

export { type ColdRowsOf, coldRowsOf, lookup } from '../leader/known-rows.ts'

/** Everything that questions about a workspace are answered from, and the way for commands. A reader has no such way. */
export interface Knowledge extends KnownRows {
  readonly scope: Scope
  readonly store: ObjectStore
  readonly graph: CurrentGraph
  readonly sql: Sql
  /** The project as its code is now, where a command loaded it: its schedules and sensors may not be on record yet. */
  readonly project?: ProjectManifest | undefined
  now(): number
  /** Everything on record as of this moment, in order. */
  recordedOrder(): RecordedOrder | Promise<RecordedOrder>
  /** Makes an id for a request without one. */
  mintId(): string
  /** Submits facts. A reader refuses. */
  submit(events: readonly NewEvent[]): Promise<Submitted>
}

/** The source of knowledge. `readable` is read anew each time, because a leader that recovered has other rows. */
export interface KnowledgeSource {
  readonly graph: CurrentGraph
  readonly readable: Readable
  readonly project?: ProjectManifest | undefined
  submit(events: readonly NewEvent[]): Promise<Submitted>
}

export function knowledgeOf({ scope, store, sql, clock, ulid }: Components, source: KnowledgeSource): Knowledge {
  return {
    scope,
    store,
    sql,
    graph: source.graph,
    project: source.project,
    ...knownRows(() => source.readable),
    now: () => clock.now(),
    recordedOrder: () => source.readable.recordedOrder(),
    mintId: ulid,
    submit: (events) => source.submit(events),
  }
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
