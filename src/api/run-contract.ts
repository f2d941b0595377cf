import { z } from 'zod'
import type { LogEntry } from '../contract/pipe.ts'
import type { RunState, runs } from '../domain/runs/runs.table.ts'
import type { taskAttempts } from '../domain/tasks/task-attempts.table.ts'
import type { tasks } from '../domain/tasks/tasks.table.ts'
import { id, textMap } from '../model/envelope.ts'
import type { WireRow } from './wire-row.ts'

export const newRunBody = z.object({
  /** Asset keys or selection expressions; the run has the assets of all of them. */
  selection: z.array(id).min(1).max(1_000),
  partitions: z.array(id).max(100_000).optional(),
  /** Names the request: the same key again is the same run. */
  key: id.optional(),
  /** For a request without a key: sent again with the same id, it is the same request. */
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

export type WireRun = WireRow<typeof runs>

export interface RunWithAsker extends WireRun {
  /** `schedule nightly`, `sensor files` or the name of the user who asked; null if that is known of another run only, as of a rerun. */
  readonly asked_by: string | null
}
export type WireTask = WireRow<typeof tasks>
export type WireAttempt = WireRow<typeof taskAttempts>

export interface AcceptedRun {
  readonly run_id: string
  readonly accepted_event_id: string
  /** False when the same request had been made before. */
  readonly created: boolean
  /** The run that this one runs again: the one that was named, or the one that the key had made and that failed. */
  readonly rerun_of: string | null
}

export interface RunDetail {
  readonly run: RunWithAsker
  readonly tasks: readonly WireTask[]
  readonly attempts: readonly WireAttempt[]
}

/** The events of a run, as they happen. */
export type RunEvent =
  | { readonly type: 'run'; readonly run: WireRun }
  | { readonly type: 'task'; readonly task: WireTask; readonly attempt?: WireAttempt | undefined }
  | {
      readonly type: 'log'
      readonly task_key: string
      readonly attempt: number
      /** The number of entries of this attempt that came before these. */
      readonly first: number
      readonly entries: readonly LogEntry[]
    }

export interface RunQuery {
  readonly limit: number
  /** Only runs in this state. */
  readonly state?: RunState | undefined
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

/** Questions and commands about runs. */
export interface RunsApi {
  /** `traceparent` is the trace of the caller; the run belongs to it. */
  request(run: NewRunBody, user: string, traceparent?: string): Promise<AcceptedRun>
  cancel(runId: string, user: string, reason: string | undefined): Promise<{ run_id: string; accepted_event_id: string }>
  rerun(runId: string, body: RerunBody, user: string, traceparent?: string): Promise<AcceptedRun>
  /** The newest first. */
  list(query: RunQuery): Promise<readonly RunWithAsker[]>
  get(runId: string): Promise<RunDetail>
  logs(runId: string, query: LogQuery): AsyncIterable<RunLogEntry>
  /** The run as it is now, then everything that happens until it is over. */
  follow(runId: string, signal: AbortSignal): AsyncIterable<RunEvent>
}
