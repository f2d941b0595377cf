import { z } from 'zod'
import { sha256 } from '../../lib/hash.ts'
import { fingerprint, id, runKey, textMap } from '../../model/envelope.ts'
import { applied, defineEvent, duplicate, ignored, waitFor } from '../../model/event.ts'
import { type BackfillRow, backfills, isBackfillOver } from '../backfills/backfills.table.ts'
import { scheduleTicks } from '../schedules/schedule-ticks.table.ts'
import { noteRunOfSchedule } from '../schedules/scheduled-runs.ts'
import { type SensorEvalRow, sensorEvals } from '../sensors/sensor-evals.table.ts'
import { backfillSubject, evalSubject, runSubject, tickSubject } from '../subjects.ts'
import { requestSummary } from './request-summary.ts'
import { runKeyConflicts } from './run-key-conflicts.table.ts'
import { runKeyIndex } from './run-key-index.table.ts'
import { runs } from './runs.table.ts'
import { evaluationOf, runKeyBelongsTo, runKeyPrefixes, sourceRef } from './trigger.ts'

const payload = z
  .object({
    run_key: runKey,
    run_id: z.string().regex(/^run_[a-z2-7]{26}$/, 'must be run_ and 26 characters of base32'),
    /** Which tenant secret the run id was made with. */
    secret_id: id,
    request_fingerprint: fingerprint,
    asset_selection: z.array(id).min(1).max(10_000),
    partition_selection: z.array(id).max(100_000).nullish(),
    trigger_source_ref: sourceRef,
    /** Runs that must have ended before this one is planned. */
    after_run_ids: z.array(id).max(1_000).nullish(),
    labels: textMap.default({}),
    priority: z.number().int().min(-1_000).max(1_000).default(0),
  })
  .superRefine((request, context) => {
    if (!runKeyBelongsTo(request.run_key, request.trigger_source_ref)) {
      const expected = runKeyPrefixes(request.trigger_source_ref).join(' or ')
      context.addIssue({
        code: 'custom',
        path: ['run_key'],
        message: `a ${request.trigger_source_ref.type} run key starts with ${expected}`,
      })
    }
  })

export const RunRequested = defineEvent({
  type: 'RunRequested',
  version: 1,
  doc: 'A user or an automation requested a run. Every run starts with this event.',
  payload,
  idempotencyKey: (request) => `runreq:${request.run_key}:${sha256(request.request_fingerprint)}`,
  dedup: 'structure',
  about: ({ trigger_source_ref: source }) =>
    source.type === 'backfill' ? { owner: 'backfills', id: source.backfill_id } : undefined,
  reads: (request) => {
    const source = request.trigger_source_ref
    const asker = evaluationOf(source)
    return [
      { table: runKeyIndex, key: [request.run_key] },
      { table: runKeyConflicts, key: [request.run_key, request.request_fingerprint] },
      ...(asker === undefined ? [] : [{ table: sensorEvals, key: [asker.eval_id] } as const]),
      ...(source.type === 'schedule' ? [{ table: scheduleTicks, key: [source.tick_id] } as const] : []),
    ]
  },
  ordered: [
    {
      with: ['RunRequested'],
      when: (mine, other) => mine.run_key === other.run_key,
      why: 'The first request of a run key creates the run; a later one with another fingerprint is a conflict.',
    },
    {
      with: ['ScheduleTicked'],
      when: ({ trigger_source_ref: source }, other) => source.type === 'schedule' && source.tick_id === other.tick_id,
      why: 'A skipped tick requests no run until it is triggered.',
    },
  ],
  fold({ event, at, payload: request, rows, wake }) {
    const source = request.trigger_source_ref
    const existing = rows.cold(runKeyIndex).lookup(request.run_key)
    // The index outlives the records of ticks and evaluations, so that a repetition is known for ever.
    if (existing?.request_fingerprint === request.request_fingerprint) return duplicate

    const asker = evaluationOf(source)
    if (asker !== undefined) {
      const evaluation = rows.cold(sensorEvals).lookup(asker.eval_id)
      if (evaluation === undefined) return waitFor(evalSubject(asker.eval_id))
      const refusal = refusalOf(evaluation, asker.sensor_id, request.run_key)
      if (refusal !== undefined) return ignored(refusal)
    } else if (source.type === 'schedule') {
      const tick = rows.cold(scheduleTicks).lookup(source.tick_id)
      if (tick?.tick_event_id == null) return waitFor(tickSubject(source.tick_id))
      if (tick.status !== 'triggered' || tick.run_key !== request.run_key) return ignored('tick_not_triggered')
    } else if (source.type === 'backfill') {
      const refusal = refusalOfChunk(rows.hot(backfills).get(source.backfill_id), source.chunk_index, request)
      if (refusal === 'not_planned_yet') return waitFor(backfillSubject(source.backfill_id))
      if (refusal !== undefined) return ignored(refusal)
    }

    const summary = requestSummary(request, at)
    if (existing !== undefined) {
      if (rows.cold(runKeyConflicts).lookup(request.run_key, request.request_fingerprint) !== undefined)
        return ignored('run_key_conflict')
      rows.cold(runKeyConflicts).merge({
        run_key: request.run_key,
        conflicting_fingerprint: request.request_fingerprint,
        existing_fingerprint: existing.request_fingerprint,
        existing_run_id: existing.run_id,
        existing_request: existing.request,
        conflicting_request: summary,
        conflicting_event_id: event.event_id,
        detected_at: at,
        row_version: event.event_id,
      })
      return ignored('run_key_conflict')
    }

    rows.cold(runKeyIndex).merge({
      run_key: request.run_key,
      run_id: request.run_id,
      request_fingerprint: request.request_fingerprint,
      created_at: at,
      request: summary,
      row_version: event.event_id,
    })
    const run = rows.hot(runs).insert({
      run_id: request.run_id,
      run_key: request.run_key,
      secret_id: request.secret_id,
      state: 'PENDING',
      trigger_type: source.type,
      trigger_source_ref: source,
      request_fingerprint: request.request_fingerprint,
      asset_selection: request.asset_selection,
      assets: null,
      partition_selection: request.partition_selection ?? null,
      after_run_ids: request.after_run_ids ?? null,
      labels: request.labels,
      priority: request.priority,
      traceparent: event.traceparent ?? null,
      plan_id: null,
      graph_version: null,
      plan_parts: 0,
      plan_parts_seen: 0,
      plan_parts_missing: null,
      tasks_total: 0,
      tasks_succeeded: 0,
      tasks_failed: 0,
      tasks_skipped: 0,
      tasks_cancelled: 0,
      error: null,
      requested_at: at,
      planned_at: null,
      started_at: null,
      cancel_requested_at: null,
      cancel_requested_by: null,
      cancel_reason: null,
      finished_at: null,
      alerted_at: null,
      row_version: event.event_id,
    })

    if (source.type === 'schedule') {
      rows.cold(scheduleTicks).merge({ tick_id: source.tick_id, run_id: request.run_id, row_version: event.event_id })
      noteRunOfSchedule(rows, run, event.event_id)
    }
    wake(runSubject(request.run_id))
    return applied
  },
})

/** Why a request of a sensor makes no run: only an evaluation that was accepted asks for runs, and only for those it named. */
function refusalOf(evaluation: Readonly<SensorEvalRow>, sensorId: string, runKey: string): string | undefined {
  if (evaluation.sensor_id !== sensorId) return 'evaluation_of_another_sensor'
  if (evaluation.status === 'error') return 'evaluation_failed'
  if (evaluation.status === 'skipped_stale_cursor') return 'stale_evaluation'
  if (!evaluation.accepted) return 'evaluation_not_accepted'
  return evaluation.run_keys.includes(runKey) ? undefined : 'run_not_in_evaluation'
}

/** The same of a chunk: it was refused, or planned with another request. */
function refusalOfChunk(
  backfill: Readonly<BackfillRow> | undefined,
  index: number,
  { run_id, request_fingerprint }: { readonly run_id: string; readonly request_fingerprint: string },
): string | undefined {
  if (backfill === undefined) return 'not_planned_yet'
  if (isBackfillOver(backfill.state)) return 'backfill_over'
  // A chunk that was refused is planned again under the same number, or the backfill ends.
  if (index >= backfill.planned_chunks) return 'not_planned_yet'
  const chunk = backfill.active_chunks.find(({ chunk_index }) => chunk_index === index)
  return chunk?.run_id === run_id && chunk.request_fingerprint === request_fingerprint ? undefined : 'chunk_not_planned'
}
