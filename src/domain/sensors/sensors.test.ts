import { describe, expect, test } from 'vitest'
import { RunStory, Story } from '../../testing/histories/story.ts'
import { SensorCursorReset } from './sensor-cursor-reset.event.ts'
import { sensorEvals } from './sensor-evals.table.ts'
import { SensorEvaluated } from './sensor-evaluated.event.ts'
import { sensorState } from './sensor-state.table.ts'

const poll = (number: number, from: string | null, version: number, to?: string) => ({
  sensor_id: 'files',
  eval_id: `eval-${number}`,
  trigger_source: { source: 'poll' as const, poll_epoch: number },
  cursor_before: from,
  cursor_after: to ?? null,
  expected_state_version: version,
  status: 'triggered' as const,
})
const requestOf = (story: Story, number: number) =>
  new RunStory(story, `file-${number}`, { type: 'sensor', sensor_id: 'files', eval_id: `eval-${number}` })

describe('a sensor', () => {
  test('[I13] moves its cursor from poll to poll', () => {
    const story = new Story()
    story.tell(SensorEvaluated, poll(1, null, 0, 'a'))
    story.tell(SensorEvaluated, poll(2, 'a', 1, 'b'))
    expect(story.row(sensorState, 'files')).toMatchObject({ cursor: 'b', state_version: 2, last_eval_id: 'eval-2' })
  })

  test('[A3] of two polls from the same cursor the first counts; the other is recorded as stale and its runs are not made', () => {
    const story = new Story()
    story.tell(SensorEvaluated, poll(1, null, 0, 'a'))
    story.tell(SensorEvaluated, poll(2, null, 0, 'b'))
    expect(requestOf(story, 1).requested()).toEqual({ kind: 'applied' })
    expect(requestOf(story, 2).requested()).toEqual({ kind: 'ignored', reason: 'stale_evaluation' })
    expect(story.row(sensorEvals, 'eval-2')?.status).toBe('skipped_stale_cursor')
    expect(story.row(sensorState, 'files')?.cursor).toBe('a')
  })

  test('[A3] the request of a run waits for the evaluation that asked for it', () => {
    const story = new Story()
    const request = requestOf(story, 1)
    expect(request.requested()).toMatchObject({ kind: 'parked' })
    story.tell(SensorEvaluated, poll(1, null, 0, 'a'))
    expect(request.row?.state).toBe('PENDING')
  })

  test('a poll that started from a version not seen yet waits for it', () => {
    const story = new Story()
    expect(story.tell(SensorEvaluated, poll(2, 'a', 1, 'b'))).toMatchObject({ kind: 'parked' })
    story.tell(SensorEvaluated, poll(1, null, 0, 'a'))
    expect(story.row(sensorState, 'files')).toMatchObject({ cursor: 'b', state_version: 2 })
  })

  test('[A3] a reset makes polls stale that were under way', () => {
    const story = new Story()
    story.tell(SensorEvaluated, poll(1, null, 0, 'a'))
    story.tell(SensorCursorReset, { sensor_id: 'files', request_id: 'r1', cursor: null, changed_by: 'ada' })
    story.tell(SensorEvaluated, poll(2, 'a', 1, 'b'))
    expect(story.row(sensorEvals, 'eval-2')?.status).toBe('skipped_stale_cursor')
    expect(story.row(sensorState, 'files')).toMatchObject({ cursor: null, state_version: 2 })
  })

  test('[A3] errors keep the cursor and are counted until a poll succeeds', () => {
    const story = new Story()
    story.tell(SensorEvaluated, poll(1, null, 0, 'a'))
    story.tell(SensorEvaluated, { ...poll(2, 'a', 1, 'b'), status: 'error', error: 'no route to host' })
    expect(story.row(sensorState, 'files')).toMatchObject({
      cursor: 'a',
      consecutive_errors: 1,
      last_error: 'no route to host',
    })
    story.tell(SensorEvaluated, { ...poll(3, 'a', 2), status: 'no_new_data' })
    expect(story.row(sensorState, 'files')).toMatchObject({ cursor: 'a', consecutive_errors: 0, last_error: null })
  })

  test('[I18] a message that is delivered again is not evaluated again', () => {
    const story = new Story()
    const push = {
      sensor_id: 'files',
      trigger_source: { source: 'push' as const, message_id: 'm1' },
      status: 'triggered' as const,
    }
    story.tell(SensorEvaluated, { ...push, eval_id: 'eval-1' })
    expect(story.tell(SensorEvaluated, { ...push, eval_id: 'eval-1' })).toEqual({ kind: 'duplicate' })
    expect(story.row(sensorState, 'files')?.state_version, 'a push leaves the cursor of polls alone').toBe(0)
  })
})
