import { describe, expect, test } from 'vitest'
import type { Envelope } from '../../model/envelope.ts'
import { parkedEvents } from '../../model/system-tables.ts'
import { RunStory, Story } from '../../testing/histories/story.ts'
import { runKeyConflicts } from '../runs/run-key-conflicts.table.ts'
import { RunRequested } from '../runs/run-requested.event.ts'
import { evalIdOf } from './evaluation-ids.ts'
import { SensorCursorReset } from './sensor-cursor-reset.event.ts'
import { sensorEvals } from './sensor-evals.table.ts'
import { SensorEvaluated } from './sensor-evaluated.event.ts'
import { SensorPaused } from './sensor-paused.event.ts'
import { SensorResumed } from './sensor-resumed.event.ts'
import { sensorState } from './sensor-state.table.ts'
import { SensorsPolled } from './sensors-polled.event.ts'

const poll = (begun: string, cursor_before: string | null, state_version: number, cursor_after?: string) => ({
  sensor_id: 'files',
  begun,
  trigger_source: { source: 'poll' as const, state_version },
  cursor_before,
  cursor_after: cursor_after ?? null,
  status: 'triggered' as const,
  run_keys: [`sensor:files:key:${begun}`],
})
const nothing = { status: 'no_new_data' as const, run_keys: [] }
const failed = { status: 'error' as const, run_keys: [], error: 'no route to host' }
const pollId = (begun: string, state_version: number) => evalIdOf('files', { source: 'poll', state_version }, begun)
const requestOf = (story: Story, begun: string, version: number, key = begun) =>
  new RunStory(story, `key:${key}`, { type: 'sensor', sensor_id: 'files', eval_id: pollId(begun, version) })
const stateOf = (story: Story) => story.row(sensorState, 'files')

describe('a poll', () => {
  test('[I13] moves the cursor from where the one before left it', () => {
    const story = new Story()
    story.tell(SensorEvaluated, poll('1', null, 0, 'a'))
    story.tell(SensorEvaluated, poll('2', 'a', 1, 'b'))
    expect(stateOf(story)).toMatchObject({ cursor: 'b', state_version: 2, last_eval_id: pollId('2', 1) })
  })

  test('[A3][A21] from the same version as another loses to the first, keeps a record of its own, and its runs are not made', () => {
    const story = new Story()
    story.tell(SensorEvaluated, poll('1', null, 0, 'a'))
    story.tell(SensorEvaluated, poll('2', null, 0, 'b'))
    expect(requestOf(story, '1', 0).requested()).toEqual({ kind: 'applied' })
    expect(requestOf(story, '2', 0).requested()).toEqual({ kind: 'ignored', reason: 'stale_evaluation' })
    expect(story.rows(sensorEvals)).toMatchObject([
      { eval_id: pollId('1', 0), status: 'triggered', accepted: true },
      { eval_id: pollId('2', 0), status: 'skipped_stale_cursor', accepted: false },
    ])
    expect(stateOf(story)?.cursor).toBe('a')
  })

  test('[A21] counts, however soon after the one before it was made', () => {
    const story = new Story()
    const first = story.write(SensorEvaluated, poll('1', null, 0, 'a'))
    const second = { ...story.write(SensorEvaluated, poll('2', 'a', 1, 'b')), timestamp: first.timestamp }
    for (const event of [first, second]) expect(story.hear(event)).toEqual({ kind: 'applied' })
    expect(stateOf(story)?.cursor).toBe('b')
  })

  test('that began from a version not heard of yet waits for it', () => {
    const story = new Story()
    expect(story.tell(SensorEvaluated, poll('2', 'a', 1, 'b'))).toMatchObject({ kind: 'parked' })
    story.tell(SensorEvaluated, poll('1', null, 0, 'a'))
    expect(stateOf(story)).toMatchObject({ cursor: 'b', state_version: 2 })
  })

  test('[A3] that was under way when the cursor was reset is stale', () => {
    const story = new Story()
    story.tell(SensorEvaluated, poll('1', null, 0, 'a'))
    const reset = { sensor_id: 'files', request_id: 'r1', cursor: null, changed_by: 'ada', reason: 'files came late' }
    story.tell(SensorCursorReset, reset)
    story.tell(SensorEvaluated, poll('2', 'a', 1, 'b'))
    expect(story.row(sensorEvals, pollId('2', 1))?.status).toBe('skipped_stale_cursor')
    const by = { cursor_reset_by: 'ada', cursor_reset_reason: 'files came late' }
    expect(stateOf(story)).toMatchObject({ cursor: null, state_version: 2, ...by })
  })

  test('[A3][A24] that fails keeps the cursor, makes no run and waits longer each time, until one succeeds', () => {
    const story = new Story()
    story.tell(SensorEvaluated, poll('1', null, 0, 'a'))
    story.tell(SensorEvaluated, { ...poll('2', 'a', 1, 'b'), ...failed })
    expect(requestOf(story, '2', 1).requested()).toEqual({ kind: 'ignored', reason: 'evaluation_failed' })
    const once = stateOf(story)
    expect(once).toMatchObject({ cursor: 'a', status: 'ERROR', consecutive_errors: 1, last_error: 'no route to host' })
    story.tell(SensorEvaluated, { ...poll('3', 'a', 2), ...failed })
    const twice = stateOf(story)
    const wait = (state: typeof once) => (state?.backoff_until ?? 0) - (state?.last_error_at ?? 0)
    expect(wait(twice)).toBe(2 * wait(once))
    story.tell(SensorEvaluated, { ...poll('4', 'a', 3), ...nothing })
    const good = { status: 'ACTIVE', consecutive_errors: 0, last_error: null, backoff_until: null }
    expect(stateOf(story)).toMatchObject({ cursor: 'a', ...good })
  })

  test('[A23] that finds nothing leaves the version alone, so that one under way still counts', () => {
    const story = new Story()
    story.tell(SensorEvaluated, { ...poll('1', null, 0), ...nothing })
    expect(stateOf(story)?.state_version).toBe(0)
    story.tell(SensorEvaluated, poll('2', null, 0, 'a'))
    expect(stateOf(story)).toMatchObject({ cursor: 'a', state_version: 1 })
  })

  test('[A23] that finds nothing is one of many in one event and one row, which clears errors of before', () => {
    const story = new Story()
    story.tell(SensorEvaluated, { ...poll('1', null, 0), ...failed })
    const polled = (record_id: string, state_version: number, from: number) =>
      story.tell(SensorsPolled, {
        record_id,
        polled: ['files', 'mails'].map((sensor_id) => ({
          sensor_id,
          state_version: sensor_id === 'files' ? state_version : 0,
          poll_count: 6,
          first: story.time(from),
          last: story.time(from + 50),
        })),
      })
    polled('r1', 0, 0)
    expect(stateOf(story)?.consecutive_errors, 'polls of before the error say nothing about it').toBe(1)
    polled('r2', 1, 60)
    polled('r3', 1, 120)
    expect(stateOf(story)).toMatchObject({ status: 'ACTIVE', consecutive_errors: 0, empty_polls: 12, state_version: 1 })
    expect(story.row(sensorState, 'mails')).toMatchObject({ empty_polls: 18, state_version: 0 })
    const [row, ...more] = story.rows(sensorEvals).filter((one) => one.sensor_id === 'files' && one.eval_count > 1)
    expect(row).toMatchObject({ eval_id: 'files:polls:1', eval_count: 12, status: 'no_new_data' })
    expect([(row?.evaluated_until ?? 0) > (row?.evaluated_at ?? 0), more]).toEqual([true, []])
  })
})

describe('the request of a run by a sensor', () => {
  test('[A22] waits for an evaluation that is not on record yet', () => {
    const story = new Story()
    const request = requestOf(story, '1', 0)
    expect(request.requested()).toMatchObject({ kind: 'parked' })
    story.tell(SensorEvaluated, poll('1', null, 0, 'a'))
    expect(request.row?.state).toBe('PENDING')
  })

  test('[A22] makes no run that its evaluation did not name, or under the evaluation of another sensor', () => {
    const story = new Story()
    story.tell(SensorEvaluated, poll('1', null, 0, 'a'))
    expect(requestOf(story, '1', 0, 'another').requested()).toEqual({ kind: 'ignored', reason: 'run_not_in_evaluation' })
    const stranger = new RunStory(story, 'key:1', { type: 'sensor', sensor_id: 'mails', eval_id: pollId('1', 0) })
    expect(stranger.requested()).toEqual({ kind: 'ignored', reason: 'evaluation_of_another_sensor' })
  })

  test('[A25] cannot have the run key of another sensor, and no evaluation can name one', () => {
    const story = new Story()
    const owner = new RunStory(story, 'key:1', { type: 'sensor', sensor_id: 'files', eval_id: pollId('1', 0) })
    owner.requested()
    const [request] = story.rows(parkedEvents).map(({ envelope }) => (envelope as Envelope).payload)
    expect(RunRequested.parse(request)).toMatchObject({ success: true })
    const thief = { type: 'sensor', sensor_id: 'mails', eval_id: 'mails:poll:0:1' }
    const stolen = RunRequested.parse({ ...request, trigger_source_ref: thief })
    expect(stolen.success ? '' : stolen.error.message).toContain('a sensor run key starts with sensor:mails:')
    expect(SensorEvaluated.parse({ ...poll('1', null, 0), sensor_id: 'mails' }).success).toBe(false)
  })

  test('[A26] for a key that was used for something else is a conflict that tells both requests', () => {
    const story = new Story()
    story.tell(SensorEvaluated, poll('1', null, 0, 'a'))
    story.tell(SensorEvaluated, { ...poll('2', 'a', 1, 'b'), run_keys: ['sensor:files:key:1'] })
    requestOf(story, '1', 0).requested(['orders'])
    const again = requestOf(story, '2', 1, '1')
    expect(again.requested(['revenue'])).toEqual({ kind: 'ignored', reason: 'run_key_conflict' })
    const [conflict] = story.rows(runKeyConflicts)
    const by = (begun: string, version: number) => ({ type: 'sensor', sensor_id: 'files', eval_id: pollId(begun, version) })
    expect(conflict).toMatchObject({
      existing_request: { source: by('1', 0), assets: ['orders'], asset_count: 1, partitions: null },
      conflicting_request: { source: by('2', 1), assets: ['revenue'], requested_at: conflict?.detected_at },
    })
    expect(conflict?.existing_request?.requested_at).toBeLessThan(conflict?.detected_at ?? 0)
  })
})

describe('a sensor that was paused', () => {
  test('[A8] says who paused it, when and why, and stays so through errors until it is resumed', () => {
    const story = new Story()
    story.tell(SensorPaused, { sensor_id: 'files', request_id: 'r1', changed_by: 'ana', reason: 'too loud' })
    const paused = { status: 'PAUSED', status_changed_by: 'ana', status_reason: 'too loud' }
    expect(stateOf(story)).toMatchObject({ ...paused, status_changed_at: Date.parse(story.time()) })
    story.tell(SensorEvaluated, { ...poll('1', null, 0), ...failed })
    expect(stateOf(story)).toMatchObject({ ...paused, consecutive_errors: 1 })
    story.tell(SensorResumed, { sensor_id: 'files', request_id: 'r2', changed_by: 'bob' })
    expect(stateOf(story)).toMatchObject({
      status: 'ACTIVE',
      status_changed_by: 'bob',
      status_reason: null,
      backoff_until: null,
    })
  })
})
