import { z } from 'zod'
import { keysClockTurn, recordedKeys } from '../../contract/partition-keys.ts'
import { count, fingerprint, id, runKey } from '../../model/envelope.ts'
import { applied, defineEvent, duplicate, type FoldContext, type Verdict, waitFor } from '../../model/event.ts'
import { applyReportedKeys } from '../partitions/dynamic-keys.ts'
import { evalSubject, sensorSubject } from '../subjects.ts'
import { editSensorState, forgetErrors, nextVersion, noteError, noteEvaluated, noteRefusal } from './edit-sensor-state.ts'
import type { KeyCount } from './evaluation/besides-runs.ts'
import { evalIdOf, runKeysOfSensor } from './evaluation-ids.ts'
import { settleHappening } from './happenings/happenings.ts'
import { MAX_CURSOR, MAX_RUNS, MAX_TRIES } from './limits.ts'
import { acceptMessage, failMessage, noteConflict } from './messages.ts'
import { changesSensor, evaluatesHappening } from './order.ts'
import { type SensorEvalRow, sensorEvals } from './sensor-evals.table.ts'
import { sensorMessageConflicts } from './sensor-message-conflicts.table.ts'
import { sensorMessages } from './sensor-messages.table.ts'
import { sensorState } from './sensor-state.table.ts'

const triggerSource = z.discriminatedUnion('source', [
  z.object({
    source: z.literal('push'),
    message_id: id,
    /** One more than the tries on record; deliveries that wait for the result of a try are not tries. */
    try: z.number().int().min(1).max(1_000_000),
    body_hash: id.nullish(),
    body_size: count.nullish(),
    /** After so many failed tries the message is a dead letter. */
    max_tries: z.number().int().min(1).max(MAX_TRIES).default(5),
  }),
  z.object({ source: z.literal('poll'), state_version: count }),
])

const payload = z
  .object({
    sensor_id: id,
    trigger_source: triggerSource,
    /** Chosen when the evaluation begins; together with sensor and source it is the id of the evaluation. */
    begun: id,
    definition_version: id.nullish(),
    requested_by: id.nullish(),
    cursor_before: z.string().max(MAX_CURSOR).nullish(),
    /** Absent keeps the cursor. */
    cursor_after: z.string().max(MAX_CURSOR).nullish(),
    status: z.enum(['triggered', 'no_new_data', 'error']),
    run_keys: z.array(runKey).max(MAX_RUNS).default([]),
    /** What it asked for under each of its run keys. */
    run_fingerprints: z.array(fingerprint).max(MAX_RUNS).nullish(),
    error: z.string().min(1).max(65_536).nullish(),
    /** Its code worked, but it may not have what it asked for, and trying again does not change that: its message is a dead letter at once. */
    refused: z.literal(true).optional(),
    /** The message does not fit what the sensor takes. */
    unfit: z.literal(true).optional(),
    duration_ms: count.nullish(),
    ...recordedKeys,
    keys_clock_turn: keysClockTurn,
  })
  .superRefine((evaluation, context) => {
    const wrong = (path: string, message: string) => context.addIssue({ code: 'custom', path: [path], message })
    const { status, run_keys: keys, sensor_id, error } = evaluation
    if ((status === 'triggered') !== keys.length > 0)
      wrong(
        'run_keys',
        status === 'triggered' ? 'an evaluation that triggered names its runs' : `with ${status} there are no runs`,
      )
    if (evaluation.run_fingerprints != null && evaluation.run_fingerprints.length !== keys.length)
      wrong('run_fingerprints', 'there is one for each run key')
    if (status === 'error' && error == null) wrong('error', 'a failed evaluation says why')
    if (status !== 'error' && evaluation.refused) wrong('refused', 'only a failed evaluation is refused')
    if (status !== 'error' && evaluation.unfit) wrong('unfit', 'a message that does not fit is not accepted')
    if (keys.some((key) => !key.startsWith(runKeysOfSensor(sensor_id)) && !key.startsWith('rerun:')))
      wrong('run_keys', `the run keys of ${sensor_id} start with ${runKeysOfSensor(sensor_id)}`)
  })
type Evaluation = z.infer<typeof payload>
type Push = Extract<Evaluation['trigger_source'], { source: 'push' }>
type Poll = Extract<Evaluation['trigger_source'], { source: 'poll' }>

const idOf = ({ sensor_id, trigger_source, begun }: Evaluation): string => evalIdOf(sensor_id, trigger_source, begun)

export const SensorEvaluated = defineEvent({
  type: 'SensorEvaluated',
  version: 1,
  doc: 'A sensor was evaluated. Of the evaluations of a message, and of the polls from one version of the state, one is accepted at most.',
  payload,
  idempotencyKey: (evaluation) => `sensor_eval:${idOf(evaluation)}`,
  dedup: 'structure',
  reads: (evaluation) => {
    const { sensor_id, trigger_source: source } = evaluation
    const record = { table: sensorEvals, key: [idOf(evaluation)] } as const
    if (source.source === 'poll') return [record]
    const message = [sensor_id, source.message_id] as const
    const conflict = { table: sensorMessageConflicts, key: [...message, source.body_hash ?? ''] } as const
    return [record, { table: sensorMessages, key: message }, conflict]
  },
  ordered: [changesSensor, evaluatesHappening],
  fold(context) {
    const { payload: evaluation, rows } = context
    if (rows.cold(sensorEvals).lookup(idOf(evaluation)) !== undefined) return duplicate
    const { trigger_source: source } = evaluation
    return source.source === 'push' ? foldPush(context, source) : foldPoll(context, source)
  },
})

function foldPush(context: FoldContext<Evaluation>, source: Push): Verdict {
  const { event, at, payload: evaluation, rows } = context
  const { sensor_id, status } = evaluation
  const known = rows.cold(sensorMessages).lookup(sensor_id, source.message_id)
  const evalId = idOf(evaluation)
  // The record of an evaluation may have expired; that of its message never does.
  if (known?.accepted_eval_id === evalId) return duplicate
  const isError = status === 'error'
  if (known?.status === 'accepted') {
    record(context, { status: isError ? 'error' : 'skipped_duplicate', accepted: false })
    noteConflict(context, { sensor_id, ...source }, known)
    // It happened again under the same id, long after.
    settleHappening(rows, sensor_id, source.message_id, event.event_id)
    return applied
  }
  record(context, { status, accepted: !isError })
  // Two processes tried at the same time, or the record of this try has expired: the try has counted.
  if (isError && known !== undefined && source.try <= known.tries) return applied

  const state = editSensorState(rows, sensor_id, event.event_id)
  noteEvaluated(state, evalId, { when: at, at })
  if (isError) {
    const { error, refused = false, unfit = false } = evaluation
    if (refused) noteRefusal(state, error ?? '', at)
    // One message that does not fit says nothing of the sensor.
    else if (!unfit) noteError(state, error ?? '', at)
    failMessage(context, { sensor_id, ...source }, { known, state, error: error ?? '', refused })
  } else {
    forgetErrors(state)
    acceptMessage(context, { sensor_id, ...source }, { known, state, evalId })
    applyKeys(context)
  }
  return applied
}

function foldPoll(context: FoldContext<Evaluation>, source: Poll): Verdict {
  const { event, at, payload: evaluation, rows, wake } = context
  const { sensor_id, status, cursor_before = null, cursor_after = null } = evaluation
  const known = rows.hot(sensorState).get(sensor_id)
  const version = known?.state_version ?? 0
  if (source.state_version > version) return waitFor(sensorSubject(sensor_id))
  const cursor = known?.cursor ?? null
  if (source.state_version < version || cursor_before !== cursor) {
    record(context, { status: 'skipped_stale_cursor', accepted: false })
    return applied
  }
  const isError = status === 'error'
  const isEmpty = status === 'no_new_data' && !hasKeys(evaluation) && (cursor_after ?? cursor) === cursor
  record(context, { status, accepted: !isError && !isEmpty })
  const state = editSensorState(rows, sensor_id, event.event_id)
  noteEvaluated(state, idOf(evaluation), { when: at, at })
  if (isError) noteError(state, evaluation.error ?? '', at)
  else forgetErrors(state)
  if (isEmpty) return applied
  // An error uses up the version too, so that its repetition is stale; it keeps the cursor, so that the next poll reads the same again.
  nextVersion(state)
  if (!isError) {
    if (cursor_after !== null) state.cursor = cursor_after
    applyKeys(context)
  }
  wake(sensorSubject(sensor_id))
  return applied
}

const hasKeys = ({ partition_keys_added: added, partition_keys_removed: removed }: Evaluation): boolean =>
  (added?.length ?? 0) + (removed?.length ?? 0) > 0

function applyKeys({ event, at, payload: evaluation, rows }: FoldContext<Evaluation>): void {
  const changed_by = sensorSubject(evaluation.sensor_id)
  const clock_turn = evaluation.keys_clock_turn ?? null
  applyReportedKeys(rows, evaluation, { at, event_id: event.event_id, changed_by, clock_turn })
}

const countsOf = (sets: Evaluation['partition_keys_added']): KeyCount[] | null =>
  sets == null || sets.length === 0 ? null : sets.map(({ set_name, keys }) => ({ set_name, count: keys.length }))

/** Every evaluation has its record, and the requests that name it need not wait any longer, whether it counts or not. */
function record(
  { event, at, payload: evaluation, rows, wake }: FoldContext<Evaluation>,
  became: Pick<SensorEvalRow, 'status' | 'accepted'>,
): void {
  const { trigger_source: source } = evaluation
  const push = source.source === 'push' ? source : undefined
  const eval_id = idOf(evaluation)
  rows.cold(sensorEvals).merge({
    eval_id,
    sensor_id: evaluation.sensor_id,
    evaluated_at: at,
    evaluated_until: null,
    eval_count: 1,
    trigger_source: source.source,
    message_id: push?.message_id ?? null,
    try: push?.try ?? null,
    state_version: source.source === 'poll' ? source.state_version : null,
    requested_by: evaluation.requested_by ?? null,
    definition_version: evaluation.definition_version ?? null,
    body_hash: push?.body_hash ?? null,
    body_size: push?.body_size ?? null,
    cursor_before: evaluation.cursor_before ?? null,
    cursor_after: evaluation.cursor_after ?? null,
    ...became,
    run_keys: evaluation.run_keys,
    run_fingerprints: evaluation.run_fingerprints ?? null,
    keys_added: countsOf(evaluation.partition_keys_added),
    keys_removed: countsOf(evaluation.partition_keys_removed),
    error: evaluation.error ?? null,
    duration_ms: evaluation.duration_ms ?? null,
    eval_event_id: event.event_id,
    row_version: event.event_id,
  })
  wake(evalSubject(eval_id))
}
