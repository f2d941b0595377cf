import { z } from 'zod'
import { toMs } from '../../lib/time.ts'
import { count, id, timestamp } from '../../model/envelope.ts'
import { applied, defineEvent } from '../../model/event.ts'
import { editSensorState, forgetErrors, noteEvaluated } from './edit-sensor-state.ts'
import { emptyPollsId } from './evaluation-ids.ts'
import { changesSensor } from './order.ts'
import { sensorEvals } from './sensor-evals.table.ts'
import { sensorState } from './sensor-state.table.ts'

/** Polls of one sensor in a row that found nothing: no runs, no keys, the same cursor. */
const emptyPolls = z.object({
  sensor_id: id,
  /** The version of the state that they began from. */
  state_version: count,
  poll_count: z.number().int().min(1),
  first: timestamp,
  last: timestamp,
})

/** As many sensors as one event speaks of. */
export const MAX_POLLED = 2_000

export const SensorsPolled = defineEvent({
  type: 'SensorsPolled',
  version: 1,
  doc: 'Sensors were polled and found nothing. Polls of many sensors are recorded together.',
  payload: z.object({ record_id: id, polled: z.array(emptyPolls).min(1).max(MAX_POLLED) }),
  idempotencyKey: ({ record_id }) => `sensors_polled:${record_id}`,
  dedup: 'key',
  ordered: [changesSensor],
  // Each minute would otherwise cost several objects more, for nothing but a count.
  publishedWithOthers: true,
  fold({ event, at, payload: { polled }, rows }) {
    for (const { sensor_id, state_version, poll_count, first, last } of polled) {
      // What was found since is on record by itself, and the version has moved on.
      if ((rows.hot(sensorState).get(sensor_id)?.state_version ?? 0) !== state_version) continue
      const state = editSensorState(rows, sensor_id, event.event_id)
      const [from, until] = [toMs(first), toMs(last)]
      forgetErrors(state)
      state.empty_polls += poll_count
      state.empty_since = Math.min(state.empty_since ?? from, from)
      const eval_id = emptyPollsId(sensor_id, state_version)
      noteEvaluated(state, eval_id, { when: until, at })
      rows.cold(sensorEvals).merge({
        eval_id,
        sensor_id,
        evaluated_at: state.empty_since,
        evaluated_until: until,
        eval_count: state.empty_polls,
        trigger_source: 'poll',
        state_version,
        cursor_before: state.cursor,
        status: 'no_new_data',
        accepted: false,
        run_keys: [],
        eval_event_id: event.event_id,
        row_version: event.event_id,
      })
    }
    return applied
  },
})
