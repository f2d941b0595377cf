import { z } from 'zod'
import type { LogEntry } from '../contract/pipe.ts'
import { id, textMap } from '../model/envelope.ts'

export const newRunBody = z.object({
  /** Asset keys or selection expressions: all that any of them means. */
  selection: z.array(id).min(1).max(1_000),
  partitions: z.array(id).max(100_000).optional(),
  /** Names the request: asked for again with the same key, it is the same run. */
  key: id.optional(),
  /** Of a request without a key: sent again under the same id, it is the same request, and the run keeps its name among those without a key. */
  request_id: id.optional(),
  labels: textMap.optional(),
  priority: z.number().int().min(-1_000).max(1_000).optional(),
})
export type NewRunBody = z.infer<typeof newRunBody>

export const cancelBody = z.object({ reason: z.string().max(4_096).optional() })

export const rerunBody = z.object({
  mode: z.enum(['from_failure', 'all', 'subset']).default('from_failure'),
  /** For a subset: a selection expression. */
  selection: z.string().max(4_096).optional(),
  key: id.optional(),
  /** As for a new run. */
  request_id: id.optional(),
})
export type RerunBody = z.infer<typeof rerunBody>

/** Rows of tables as JSON. */
export type WireRow = Record<string, unknown>

export interface AcceptedRun {
  readonly run_id: string
  readonly accepted_event_id: string
  readonly created: boolean
}

export interface RunDetail {
  readonly run: WireRow
  readonly tasks: readonly WireRow[]
  readonly attempts: readonly WireRow[]
}

/** What happens in a run, as it happens. */
export type RunEvent =
  | { readonly type: 'run'; readonly run: WireRow }
  | { readonly type: 'task'; readonly task: WireRow; readonly attempt?: WireRow | undefined }
  | {
      readonly type: 'log'
      readonly task_key: string
      readonly attempt: number
      /** How many entries of this attempt came before these. */
      readonly first: number
      readonly entries: readonly LogEntry[]
    }

export interface LogQuery {
  readonly task?: string | undefined
  readonly attempt?: number | undefined
}

/** A line of output and where it comes from. */
export interface RunLogEntry extends LogEntry {
  readonly task_key: string
  readonly attempt: number
}

/** What the API asks of whoever folds, and answers with. */
export interface RunsApi {
  /** `traceparent` is the trace that asks; what happens in the run belongs to it. */
  request(run: NewRunBody, user: string, traceparent?: string): Promise<AcceptedRun>
  cancel(runId: string, user: string, reason: string | undefined): Promise<{ run_id: string; accepted_event_id: string }>
  rerun(runId: string, body: RerunBody, user: string, traceparent?: string): Promise<AcceptedRun>
  list(query: { limit: number; state?: string | undefined }): Promise<readonly WireRow[]>
  get(runId: string): Promise<RunDetail>
  logs(runId: string, query: LogQuery): AsyncIterable<RunLogEntry>
  /** Everything from now until the run is over; the run as it is comes first. */
  follow(runId: string, signal: AbortSignal): AsyncIterable<RunEvent>
}
