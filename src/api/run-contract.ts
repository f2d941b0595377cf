import { z } from 'zod'
import type { LogEntry } from '../contract/pipe.ts'
import type { ReasonToMake } from '../domain/partitions/status-names.ts'
import type { RunState, runs } from '../domain/runs/runs.table.ts'
import type { TriggerType } from '../domain/runs/trigger.ts'
import type { taskAttempts } from '../domain/tasks/task-attempts.table.ts'
import type { tasks } from '../domain/tasks/tasks.table.ts'
import { id, textMap } from '../model/envelope.ts'
import type { WireRow } from './wire-row.ts'

/** Which of the selected partitions a run makes: those that are stale, that were never made, or whose last attempt failed. */
const onlyNames = ['stale', 'missing', 'failed'] as const
export type Only = (typeof onlyNames)[number]

const work = z.object({
  /** Asset keys or selection expressions; the run has the assets of all of them. With `only` it may be absent: then all assets are meant. */
  selection: z.array(id).min(1).max(1_000).optional(),
  partitions: z.array(id).max(100_000).optional(),
  /** Only what is in one of these states now. Without `partitions`, all partitions are looked at. */
  only: z.array(z.enum(onlyNames)).min(1).optional(),
})
const needsSelection = { path: ['selection'], message: 'is required, unless there is `only`' }
const saysWhat = ({ selection, only }: z.infer<typeof work>): boolean => selection !== undefined || only !== undefined

export const previewBody = work.refine(saysWhat, needsSelection)
export type PreviewBody = z.infer<typeof previewBody>

export const newRunBody = work
  .extend({
    /** Names the request: the same key again is the same run. */
    key: id.optional(),
    /** For a request without a key: sent again with the same id, it is the same request. */
    request_id: id.optional(),
    labels: textMap.optional(),
    priority: z.number().int().min(-1_000).max(1_000).optional(),
  })
  .refine(saysWhat, needsSelection)
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
  /** Assets that were selected and that the run does not make. */
  readonly left_out: readonly LeftOut[]
}

export interface LeftOut {
  readonly asset_key: string
  readonly why: string
}

/** What a request would run, if it were made now. */
export interface RunPreview {
  readonly tasks: readonly PreviewTask[]
  /** The same, shorter: the tasks of an asset that have the same reasons. */
  readonly groups: readonly PreviewGroup[]
  readonly left_out: readonly LeftOut[]
  /** Why there are no tasks; null if there are. */
  readonly nothing_to_do: string | null
}

export interface PreviewTask {
  readonly task_key: string
  readonly asset_key: string
  readonly partition_key: string | null
  /** Why it should be made; an empty list if it is as it should be, and runs because it was selected. */
  readonly reasons: readonly ReasonToMake[]
}

export interface PreviewGroup {
  readonly asset_key: string
  /** Exactly what they make, as a selection has it, neighbours as one range: `raw/orders[2025-01-01..2025-01-31]`. */
  readonly selections: readonly string[]
  readonly tasks: number
  readonly reasons: readonly ReasonToMake[]
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
  /** The `next_cursor` of the page before. */
  readonly cursor?: string | undefined
  /** Only runs in this state. */
  readonly state?: RunState | undefined
  /** Only runs that something of this kind asked for, such as `schedule`. */
  readonly trigger?: TriggerType | undefined
  /** Only runs with a task of this asset. */
  readonly asset?: string | undefined
  /** Only runs that were requested at this moment or later, and before that one. */
  readonly since?: string | undefined
  readonly until?: string | undefined
}

export interface RunPage {
  /** The newest first. */
  readonly runs: readonly RunWithAsker[]
  /** The cursor of the next page; null on the last page. */
  readonly next_cursor: string | null
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
  /** Says what a request would run, and records nothing. */
  preview(run: PreviewBody): Promise<RunPreview>
  cancel(runId: string, user: string, reason: string | undefined): Promise<{ run_id: string; accepted_event_id: string }>
  rerun(runId: string, body: RerunBody, user: string, traceparent?: string): Promise<AcceptedRun>
  /** The newest first. */
  list(query: RunQuery): Promise<readonly RunWithAsker[]>
  /** The same, with the way to the next page. */
  page(query: RunQuery): Promise<RunPage>
  get(runId: string): Promise<RunDetail>
  /** How long tasks of the assets of this run usually take, in milliseconds, from earlier successes; an asset without any is absent. */
  durations(runId: string): Promise<Readonly<Record<string, number>>>
  logs(runId: string, query: LogQuery): AsyncIterable<RunLogEntry>
  /** The run as it is now, then everything that happens until it is over. */
  follow(runId: string, signal: AbortSignal): AsyncIterable<RunEvent>
}
