import { z } from 'zod'
import { reportedKeys } from '../../contract/partition-keys.ts'
import { sha256 } from '../../lib/hash.ts'
import { count, id, runKey } from '../../model/envelope.ts'
import { applied, defineEvent, waitFor } from '../../model/event.ts'
import { applyReportedKeys } from '../partitions/dynamic-keys.ts'
import { evalSubject, sensorSubject } from '../subjects.ts'
import { editSensorState } from './edit-sensor-state.ts'
import { sensorEvals } from './sensor-evals.table.ts'
import { sensorState } from './sensor-state.table.ts'

const triggerSource = z.discriminatedUnion('source', [
  z.object({ source: z.literal('push'), message_id: id }),
  z.object({ source: z.literal('poll'), poll_epoch: z.number().int() }),
])

const payload = z
  .object({
    sensor_id: id,
    eval_id: id,
    trigger_source: triggerSource,
    cursor_before: z.string().max(65_536).nullish(),
    /** Absent keeps the cursor. */
    cursor_after: z.string().max(65_536).nullish(),
    expected_state_version: count.nullish(),
    status: z.enum(['triggered', 'no_new_data', 'error']),
    run_keys: z.array(runKey).max(10_000).default([]),
    error: z.string().max(65_536).nullish(),
    ...reportedKeys,
  })
  .superRefine((evaluation, context) => {
    if (evaluation.trigger_source.source === 'poll' && evaluation.expected_state_version == null) {
      context.addIssue({
        code: 'custom',
        path: ['expected_state_version'],
        message: 'a poll says which state version it started from',
      })
    }
  })
type Evaluation = z.infer<typeof payload>

function evaluationKey({ sensor_id, trigger_source, cursor_before }: Evaluation): string {
  if (trigger_source.source === 'push') return `sensor_eval:${sensor_id}:msg:${trigger_source.message_id}`
  return `sensor_eval:${sensor_id}:poll:${trigger_source.poll_epoch}:${cursor_before == null ? 'none' : sha256(cursor_before)}`
}

export const SensorEvaluated = defineEvent({
  type: 'SensorEvaluated',
  version: 1,
  doc: 'A sensor was evaluated. A poll moves the cursor only if it has not moved in the meantime.',
  payload,
  idempotencyKey: evaluationKey,
  dedup: 'key',
  ordered: [
    {
      with: ['SensorEvaluated', 'SensorCursorReset'],
      when: (mine, other) => mine.sensor_id === other.sensor_id,
      why: 'Compare-and-swap on the state version: of two polls from the same cursor the first one counts.',
    },
  ],
  fold({ event, at, payload: evaluation, rows, wake }) {
    const { sensor_id: sensorId, trigger_source: source, expected_state_version: expected } = evaluation
    const known = rows.hot(sensorState).get(sensorId)
    const version = known?.state_version ?? 0
    if (source.source === 'poll' && (expected ?? 0) > version) return waitFor(sensorSubject(sensorId))
    const stale =
      source.source === 'poll' && (expected !== version || (evaluation.cursor_before ?? null) !== (known?.cursor ?? null))

    rows.cold(sensorEvals).merge({
      eval_id: evaluation.eval_id,
      sensor_id: sensorId,
      evaluated_at: at,
      trigger_source: source.source,
      message_id: source.source === 'push' ? source.message_id : null,
      poll_epoch: source.source === 'poll' ? source.poll_epoch : null,
      cursor_before: evaluation.cursor_before ?? null,
      cursor_after: evaluation.cursor_after ?? null,
      expected_state_version: expected ?? null,
      status: stale ? 'skipped_stale_cursor' : evaluation.status,
      run_keys: evaluation.run_keys,
      error: evaluation.error ?? null,
      row_version: event.event_id,
    })
    wake(evalSubject(evaluation.eval_id))
    if (stale) return applied
    // As with its run requests, a poll that did not read to the end changes no keys.
    if (evaluation.status !== 'error')
      applyReportedKeys(rows, evaluation, { at, event_id: event.event_id, changed_by: sensorSubject(sensorId) })

    const state = editSensorState(rows, sensorId, event.event_id)
    if (state.last_eval_event_id === null || event.event_id > state.last_eval_event_id) {
      state.last_evaluation_at = at
      state.last_eval_id = evaluation.eval_id
      state.last_eval_event_id = event.event_id
    }
    if (source.source === 'poll') {
      state.state_version += 1
      const failed = evaluation.status === 'error'
      state.consecutive_errors = failed ? state.consecutive_errors + 1 : 0
      state.last_error = failed ? (evaluation.error ?? 'unknown error') : null
      // An error keeps the cursor, so that the next poll reads the same again.
      if (!failed && evaluation.cursor_after != null) state.cursor = evaluation.cursor_after
      wake(sensorSubject(sensorId))
    }
    return applied
  },
})
