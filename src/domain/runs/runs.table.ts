import { col } from '../../model/column.ts'
import { defineTable, type Row } from '../../model/table.ts'
import type { SourceRef } from './trigger.ts'

export const runStates = ['PENDING', 'RUNNING', 'SUCCEEDED', 'FAILED', 'CANCELLED'] as const
export type RunState = (typeof runStates)[number]

export const isRunOver = (state: RunState): boolean => state === 'SUCCEEDED' || state === 'FAILED' || state === 'CANCELLED'

export const runs = defineTable({
  name: 'runs',
  doc: 'One row per run: who requested it, its progress and how it ended.',
  key: ['run_id'],
  storage: { kind: 'hot', sealedWith: 'runs' },
  columns: {
    run_id: col.string('Derived from the run key with the tenant secret.'),
    run_key: col.string('Names the request; a second request with the same key is the same run.'),
    secret_id: col.string('Which tenant secret made the run id, so that rotation changes nothing already created.'),
    state: col.oneOf(runStates, 'PENDING until the first dispatch.'),
    trigger_type: col.string('schedule, sensor, backfill, manual, rerun or automation.'),
    trigger_source_ref: col.json<SourceRef>('The tick, evaluation, chunk, user or run that requested it.'),
    request_fingerprint: col.string('Fingerprint of the request.'),
    asset_selection: col.strings('Asset keys or a selection expression.'),
    assets: col.optional(col.strings('Assets of the tasks of the plan, sorted; null before the first part arrives.')),
    partition_selection: col.optional(col.strings('Partition keys, null for the whole asset.')),
    after_run_ids: col.optional(col.strings('Runs that must have ended before this one is planned.')),
    labels: col.map('Labels of the request, for any use.'),
    priority: col.int('A larger number is more urgent.'),
    traceparent: col.optional(col.string('W3C trace context of the request; null when it had none.')),
    plan_id: col.optional(col.string('The plan that turned the selection into tasks.')),
    graph_version: col.optional(col.string('Version of the asset graph the plan is pinned to.')),
    plan_parts: col.int('Parts the plan has; 0 before the first arrives.'),
    plan_parts_seen: col.int('Parts folded so far; the run is planned when all are.'),
    plan_parts_missing: col.optional(
      col.json<readonly number[]>('Numbers of the parts that are still missing; null if none is known to be.'),
    ),
    tasks_total: col.int('Tasks of the plan.'),
    tasks_succeeded: col.int('Tasks that succeeded.'),
    tasks_failed: col.int('Tasks that failed for good.'),
    tasks_skipped: col.int(
      'Tasks that were skipped, because an upstream task failed or another run was materializing their partition.',
    ),
    tasks_cancelled: col.int('Tasks that were cancelled.'),
    error: col.optional(col.string('Why the run could not be planned, for example because of a cycle.')),
    requested_at: col.timestamp('When the request was received.'),
    planned_at: col.optional(col.timestamp('When the last part of the plan was received.')),
    started_at: col.optional(col.timestamp('When the first task was dispatched.')),
    cancel_requested_at: col.optional(col.timestamp('When cancellation was first requested.')),
    cancel_requested_by: col.optional(col.string('Who requested cancellation.')),
    cancel_reason: col.optional(col.string('The reason they gave.')),
    finished_at: col.optional(col.timestamp('When the last task ended.')),
    alerted_at: col.optional(col.timestamp('When the first alert about its end was raised; null if none was.')),
  },
  listed: { at: 'requested_at', filters: ['state', 'trigger_type', 'assets'] },
  ended: (run) => (isRunOver(run.state) ? { state: run.state, at: run.finished_at ?? run.requested_at } : undefined),
})
export type RunRow = Row<typeof runs>
