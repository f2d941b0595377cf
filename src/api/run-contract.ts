import { z } from 'zod'
import { errorDetail, type RecordedDetail } from '../contract/error-schema.ts'
import type { LogEntry } from '../contract/pipe.ts'
import { reasonNames } from '../domain/partitions/status-names.ts'
import { runStates, runs } from '../domain/runs/runs.table.ts'
import { sourceRef, triggerTypes } from '../domain/runs/trigger.ts'
import { taskAttempts } from '../domain/tasks/task-attempts.table.ts'
import { tasks } from '../domain/tasks/tasks.table.ts'
import { id, textMap } from '../model/envelope.ts'
import { rowSchema } from './answers/row-schema.ts'
import { anything, named, nextCursor, type Told, typedAs, whole } from './answers/told.ts'
import { listQuery, whenQuery } from './request/list-query.ts'

/** Which of the selected partitions a run makes: those that are stale, that were never made, or whose last attempt failed. */
const onlyNames = ['stale', 'missing', 'failed'] as const
export type Only = (typeof onlyNames)[number]

const work = z.object({
  select: z
    .array(id)
    .min(1)
    .max(1_000)
    .optional()
    .describe(
      'Asset keys or selection expressions; the run has the assets of all of them. With `only` it may be absent: then all assets are meant.',
    ),
  partitions: z.array(id).max(100_000).optional(),
  /** Only what is in one of these states now. Without `partitions`, all partitions are looked at. */
  only: z.array(z.enum(onlyNames)).min(1).optional(),
})
const needsSelection = { path: ['select'], message: 'is required, unless there is `only`' }
const saysWhat = ({ select, only }: z.infer<typeof work>): boolean => select !== undefined || only !== undefined

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
  select: z.string().max(4_096).optional().describe('For a subset: a selection expression.'),
  key: id.optional(),
  /** As for a new run. */
  request_id: id.optional(),
})
export type RerunBody = z.infer<typeof rerunBody>

const wireRun = named('Run', rowSchema(runs, { trigger_source_ref: sourceRef, plan_parts_missing: z.array(whole) }))
export type WireRun = Told<typeof wireRun>

const runWithAsker = named(
  'ListedRun',
  wireRun.extend({
    asked_by: z
      .string()
      .nullable()
      .describe(
        '`schedule nightly`, `sensor files` or the name of the user who asked; null if that is known of another run only, as of a rerun.',
      ),
  }),
)
export type RunWithAsker = Told<typeof runWithAsker>

export const wireTask = named('Task', rowSchema(tasks, { spec: anything }))
export type WireTask = Told<typeof wireTask>

export const wireAttempt = named(
  'Attempt',
  rowSchema(taskAttempts, { error_detail: typedAs<RecordedDetail>(errorDetail), output: anything, metrics: anything }),
)
export type WireAttempt = Told<typeof wireAttempt>

const leftOut = named('LeftOutAsset', z.object({ asset_key: z.string(), why: z.string() }))
export type LeftOut = Told<typeof leftOut>

export const acceptedRun = named(
  'AcceptedRun',
  z.object({
    run_id: z.string(),
    accepted_event_id: z.string(),
    created: z.boolean().describe('False when the same request had been made before.'),
    rerun_of: z
      .string()
      .nullable()
      .describe('The run that this one runs again: the one that was named, or the one that the key had made and that failed.'),
    left_out: z.array(leftOut).describe('Assets that were selected and that the run does not make.'),
  }),
)
export type AcceptedRun = Told<typeof acceptedRun>

const reasons = z.array(z.enum(reasonNames))

const previewTask = named(
  'PreviewedTask',
  z.object({
    task_key: z.string(),
    asset_key: z.string(),
    partition_key: z.string().nullable(),
    reasons: reasons.describe(
      'Why it should be made; an empty list if it is as it should be, and runs because it was selected.',
    ),
  }),
)
export type PreviewTask = Told<typeof previewTask>

const previewGroup = z.object({
  asset_key: z.string(),
  selections: z
    .array(z.string())
    .describe('Exactly what they make, as a selection has it, neighbours as one range: `raw/orders[2025-01-01..2025-01-31]`.'),
  tasks: whole,
  reasons,
})
export type PreviewGroup = Told<typeof previewGroup>

/** What a request would run, if it were made now. */
export const runPreview = named(
  'RunPreview',
  z.object({
    tasks: z.array(previewTask),
    groups: z.array(previewGroup).describe('The same, shorter: the tasks of an asset that have the same reasons.'),
    left_out: z.array(leftOut),
    nothing_to_do: z.string().nullable().describe('Why there are no tasks; null if there are.'),
  }),
)
export type RunPreview = Told<typeof runPreview>

export const runDetail = named(
  'RunDetail',
  z.object({ run: runWithAsker, tasks: z.array(wireTask), attempts: z.array(wireAttempt) }),
)
export type RunDetail = Told<typeof runDetail>

export const acceptedCancel = named('AcceptedCancel', z.object({ run_id: z.string(), accepted_event_id: z.string() }))

export const runDurations = named('RunDurations', z.record(z.string(), z.number()))

const logEntry = z.object({
  at: z.number().describe('Milliseconds since 1970.'),
  stream: z.enum(['stdout', 'stderr', 'log']),
  level: z.enum(['debug', 'info', 'warn', 'error']).exactOptional(),
  text: z.string(),
  fields: z.record(z.string(), z.unknown()).exactOptional(),
}) satisfies z.ZodType<LogEntry>

/** A line of output and where it comes from. */
export const runLogEntry = named('LogEntry', logEntry.extend({ task_key: z.string(), attempt: whole }))
export type RunLogEntry = Told<typeof runLogEntry>

/** The events of a run, as they happen. */
export const runEvent = named(
  'RunEvent',
  z.discriminatedUnion('type', [
    z.object({ type: z.literal('run'), run: runWithAsker.partial({ asked_by: true }) }),
    z.object({ type: z.literal('task'), task: wireTask, attempt: wireAttempt.optional() }),
    z.object({
      type: z.literal('log'),
      task_key: z.string(),
      attempt: whole,
      first: whole.describe('The number of entries of this attempt that came before these.'),
      entries: z.array(logEntry),
    }),
  ]),
)
export type RunEvent = Told<typeof runEvent>

export const runListQuery = listQuery.extend({
  status: z.enum(runStates).optional().describe('Only runs in this state.'),
  trigger: z.enum(triggerTypes).optional().describe('Only runs that something of this kind asked for, such as `schedule`.'),
  asset: id.optional().describe('Only runs with a task of this asset.'),
  ...whenQuery('requested'),
})
export type RunQuery = Told<typeof runListQuery>

export const runPage = named('RunPage', z.object({ runs: z.array(runWithAsker).describe('The newest first.'), ...nextCursor }))
export type RunPage = Told<typeof runPage>

export const logQuery = z.object({
  task: z.string().max(512).optional().describe('Only what this task printed.'),
  attempt: z.coerce.number().int().min(1).optional().describe('Only what its attempt of this number printed.'),
})
export type LogQuery = Told<typeof logQuery>

/** Questions and commands about runs. */
export interface RunsApi {
  /** `traceparent` is the trace of the caller; the run belongs to it. */
  request(run: NewRunBody, user: string, traceparent?: string): Promise<AcceptedRun>
  /** Says what a request would run, and records nothing. */
  preview(run: PreviewBody): Promise<RunPreview>
  cancel(runId: string, user: string, reason: string | undefined): Promise<Told<typeof acceptedCancel>>
  rerun(runId: string, body: RerunBody, user: string, traceparent?: string): Promise<AcceptedRun>
  /** The newest first. */
  list(query: RunQuery): Promise<readonly RunWithAsker[]>
  /** The same, with the way to the next page. */
  page(query: RunQuery): Promise<RunPage>
  get(runId: string): Promise<RunDetail>
  /** How long tasks of the assets of this run usually take, in milliseconds, from earlier successes; an asset without any is absent. */
  durations(runId: string): Promise<Told<typeof runDurations>>
  logs(runId: string, query: LogQuery): AsyncIterable<RunLogEntry>
  /** The run as it is now, then everything that happens until it is over. */
  follow(runId: string, signal: AbortSignal): AsyncIterable<RunEvent>
}
