import type { RunOfEvaluation } from '../../contract/delivery.ts'
import type { Blamed } from '../partitions/explain.ts'
import type { Cause } from '../partitions/status-names.ts'
import type { RunState } from '../runs/runs.table.ts'
import type { BesidesRuns } from '../sensors/evaluation/besides-runs.ts'
import type { TaskState } from '../tasks/tasks.table.ts'

/** A moment in UTC, such as 2025-01-15T05:00:00.000Z. */
type Moment = string

/** Partitions of an asset: the first of them, and how many there are. */
interface SomePartitions {
  readonly asset_key: string
  readonly partition_keys: readonly string[]
  readonly count: number
}

/** Everything that can be a reason, and the facts that each is made of. Each code has words in words.ts. */
export interface FactsByCode {
  // What became of a tick.
  triggered: {
    run_id: string | null
    state: RunState | null
    cause: 'cron' | 'catch_up' | 'manual'
    by: string | null
    decided_at: Moment | null
    /** How long after its moment the clock brought it; null if it was caught up or asked for. */
    lateness_ms: number | null
  }
  /** Somebody asked for a run since. */
  triggered_by_hand: { run_id: string | null; state: RunState | null; by: string | null; at: Moment }
  /** It is one of several that were skipped together. */
  skipped_together: { first: Moment; last: Moment; count: number }
  catchup_window: { window_minutes: number | null; decided_at: Moment | null }
  catchup_limit: { most: number | null; decided_at: Moment | null }
  overlap: { run_id: string | null; scheduled_for: Moment | null; state: RunState | null }
  no_window: { text: string }
  condition: { text: string }
  condition_error: { text: string }
  bad_selection: { text: string }
  code_removed: { text: string }
  /** No code of the project can be evaluated now. */
  code_unavailable: { text: string }
  /** Recorded by another version of Servo. */
  other_reason: { code: string | null; text: string }
  not_due: { before: Moment | null; after: Moment | null }
  before_start: { start_at: Moment }
  after_end: { end_at: Moment }
  not_declared_yet: { created_at: Moment }
  changed_since: { defined_at: Moment }
  undecided: { decided_until: Moment | null }
  never_due: { since: Moment }
  next_tick: { at: Moment }
  no_next_tick: { end_at: Moment | null }

  // Why nothing happens at all.
  paused: { by: string | null; at: Moment | null; reason: string | null; is_everything: boolean }
  /** The command that ends the pause that lasts now. */
  resume_with: { command: string }
  disabled: { since: Moment }
  /** The server was started without automation. */
  automation_off: Record<string, never>
  removed: { at: Moment }

  // What became of an evaluation or a message.
  evaluation_triggered: {
    at: Moment
    message_id: string | null
    by: string | null
    run_ids: readonly string[]
    /** The first of its requests, and how many there are. */
    runs: readonly RunOfEvaluation[]
    count: number
  } & BesidesRuns
  evaluation_no_new_data: { at: Moment; until: Moment | null; count: number; message_id: string | null } & BesidesRuns
  evaluation_error: { at: Moment; message_id: string | null; try: number | null; error: string }
  evaluation_stale: { at: Moment }
  evaluation_duplicate: { at: Moment; message_id: string | null }
  never_evaluated: { is_poll: boolean; since: Moment }
  backing_off: { errors: number; error: string; until: Moment | null }
  secret_missing: { variables: readonly string[] }
  dead_letters: { sensor: string; count: number }
  cursor_reset: { at: Moment; by: string | null; reason: string | null }
  next_poll: { at: Moment; is_due: boolean }
  message_accepted: {
    at: Moment | null
    tries: number
    /** Null if the evaluation is not on record any more. */
    run_ids: readonly string[] | null
    runs: readonly RunOfEvaluation[] | null
    eval_id: string
  } & BesidesRuns
  message_failing: { tries: number; error: string; replayed_at: Moment | null; replayed_by: string | null }
  message_dead: { sensor: string; message_id: string; since: Moment | null; tries: number; error: string }
  message_unknown: { sensor: string }
  message_conflicts: { count: number }

  // Who asked for a run.
  asked_by_schedule: {
    schedule: string
    scheduled_for: Moment | null
    cause: 'cron' | 'catch_up' | 'manual' | null
    by: string | null
    at: Moment
  }
  asked_by_sensor: { sensor: string; message_id: string | null; by: string | null; at: Moment }
  asked_by_user: { user: string; at: Moment }
  asked_by_rerun: { run_id: string; mode: 'from_failure' | 'subset' | 'all'; at: Moment }
  asked_by_backfill: { backfill_id: string; chunk_index: number; at: Moment }
  asked_by_automation: { asset_key: string; at: Moment }
  /** The record of the request is gone. */
  asked_long_ago: { run_id: string }

  // Why a run waits, or ended as it did.
  selects: { assets: readonly string[]; partitions: readonly string[] | null }
  after_runs: { run_ids: readonly string[] }
  not_planned: { at: Moment }
  task_running: { task_key: string; attempt: number; since: Moment | null; worker_id: string | null }
  task_with_queue: { task_key: string; queue: string; since: Moment | null }
  /** Another run makes its partition. */
  overlap_waits: { task_key: string; run_id: string }
  overlap_skipped: { task_key: string; run_id: string }
  more_skipped: { count: number }
  pool_full: { task_key: string; pool: string; slots: number; busy: number }
  no_worker_free: { task_key: string; queue: string; since: Moment | null; busy: number }
  upstream_unfinished: { task_key: string; upstream: readonly { task_key: string; state: TaskState }[]; count: number }
  retry_later: { task_key: string; attempt: number; at: Moment | null; error: string | null }
  more_tasks: { count: number }
  cancel_asked: { by: string | null; at: Moment; reason: string | null }
  cancelled_too_late: { by: string | null; at: Moment; reason: string | null }
  unplannable: { error: string }
  task_failed: { task_key: string; attempts: number; error: string | null; at: Moment | null }
  more_failed: { count: number }
  tasks_skipped: { count: number; cause_task_key: string | null }
  all_succeeded: { count: number; at: Moment | null }

  // Why a backfill waits, or ended as it did.
  asked_by_retry: { backfill_id: string; user: string; at: Moment }
  backfill_progress: {
    partitions: number
    succeeded: number
    failed: number
    skipped: number
    cancelled: number
    planned_chunks: number
    total_chunks: number
  }
  /** The first of its runs, how many there are, and how many there may be. */
  chunks_under_way: { run_ids: readonly string[]; count: number; most: number }
  partitions_failed: SomePartitions
  /** Skipped because what they need failed: these, if all of that is of one asset. */
  partitions_skipped: SomePartitions & { cause: SomePartitions | null }
  /** Skipped because another run was making them, or what they need. */
  partitions_overlapped: SomePartitions
  /** Somebody cancelled runs of the backfill, and not the backfill itself. */
  partitions_cancelled: SomePartitions
  /** The first of its runs that failed; without a task if it could not be planned. */
  chunk_failed: { run_id: string; task_key: string | null; error: string | null }
  log_with: { command: string }
  stopped_after_failures: { most: number; failed: number }
  retry_with: { command: string }
  /** Partitions that it never made, nor tried to the end. */
  continue_with: { count: number; command: string }

  // How an asset is, and what would run it.
  made_by_run: { run_id: string; at: Moment }
  last_run: { run_id: string; at: Moment }
  made_outside: { at: Moment }
  wiped: { at: Moment }
  /** `since` is when the first attempt after the last materialization failed, if that is on record. */
  attempt_failed: { run_id: string; at: Moment; since: Moment | null; error: string | null }
  in_run: { run_id: string; task_key: string; state: TaskState }
  in_requested_run: { run_id: string }
  stale_because: SomePartitions & {
    cause: Cause
    upstream: Blamed | null
    since: Moment | null
    path: readonly string[]
  }
  fresh: Record<string, never>
  partition_counts: { partitions: number; made: number; stale: number; failed: number; missing: number }
  run_by_schedule: { schedule: string; status: 'active' | 'standing'; next: Moment | null }
  last_tick: { at: Moment; verdict: WhyVerdict }
  run_by_sensor: { sensor: string; status: 'active' | 'standing' }
  /** Sensors that may ask for any asset: the first of them, and how many there are. */
  run_by_any_sensor: { sensors: readonly string[]; count: number }
  more_automation: { count: number }
  /** Declared in the code, and no server has recorded it yet. */
  not_recorded: { kind: 'schedule' | 'sensor'; name: string }
  nothing_automates: Record<string, never>
}

export type ReasonCode = keyof FactsByCode

/** One reason, and the reasons behind it. */
export type Reason<C extends ReasonCode = ReasonCode> = {
  [K in C]: { readonly code: K; readonly facts: Readonly<FactsByCode[K]>; readonly because: readonly Reason[] }
}[C]

export const reason = <C extends ReasonCode>(
  code: C,
  facts: Readonly<FactsByCode[C]>,
  because: readonly Reason[] = [],
): Reason<C> => {
  const made: { readonly code: C; readonly facts: Readonly<FactsByCode[C]>; readonly because: readonly Reason[] } = {
    code,
    facts,
    because,
  }
  return made
}

export const whyKinds = ['schedule', 'sensor', 'backfill', 'run', 'asset'] as const
export type WhyKind = (typeof whyKinds)[number]

export const whyVerdicts = [
  'ran',
  'did_not_run',
  'is_due',
  'will_not_run',
  'waits',
  'runs',
  'succeeded',
  'failed',
  'cancelled',
  'fresh',
  'stale',
  'never_made',
] as const
export type WhyVerdict = (typeof whyVerdicts)[number]

/** What became of something, and why. */
export interface WhyAnswer {
  readonly subject: {
    readonly kind: WhyKind
    readonly id: string
    readonly name: string
    readonly partition: string | null
    /** The message that was asked about. */
    readonly message_id: string | null
  }
  readonly verdict: WhyVerdict
  /** The moment in question, if there is one. */
  readonly at: Moment | null
  /** The zone in which the schedule is read; null where there is none. */
  readonly timezone: string | null
  /** The most telling first. */
  readonly because: readonly Reason[]
}
