import { describe, expect, test } from 'vitest'
import { RunStory, Story } from '../../testing/histories/story.ts'
import { evalIdOf } from './evaluation-ids.ts'
import { deliveryOf } from './messages.ts'
import { sensorEvals } from './sensor-evals.table.ts'
import { SensorEvaluated } from './sensor-evaluated.event.ts'
import { SensorMessageConflicted } from './sensor-message-conflicted.event.ts'
import { sensorMessageConflicts } from './sensor-message-conflicts.table.ts'
import { SensorMessageReplayed } from './sensor-message-replayed.event.ts'
import { sensorMessages } from './sensor-messages.table.ts'
import { sensorState } from './sensor-state.table.ts'

const runKey = 'sensor:hook:msg:m1:0'
const source = (attempt: number, body_hash = 'body') => ({
  source: 'push' as const,
  message_id: 'm1',
  try: attempt,
  body_hash,
  body_size: 4,
  max_tries: 2,
})
const push = (attempt: number, begun: string, body_hash?: string) => ({
  sensor_id: 'hook',
  begun,
  trigger_source: source(attempt, body_hash),
  status: 'triggered' as const,
  run_keys: [runKey],
})
const failing = (attempt: number, begun: string) => ({
  ...push(attempt, begun),
  status: 'error' as const,
  run_keys: [],
  error: 'no such column',
})
const evalId = (attempt: number, begun: string) => evalIdOf('hook', source(attempt), begun)
const requestOf = (story: Story, attempt: number, begun: string) =>
  new RunStory(story, 'msg:m1:0', { type: 'sensor', sensor_id: 'hook', eval_id: evalId(attempt, begun) })
const message = (story: Story) => story.row(sensorMessages, 'hook', 'm1')
const replay = { sensor_id: 'hook', message_id: 'm1', request_id: 'r1', requested_by: 'ada' }

describe('a message', () => {
  test('[A20][I18] that is delivered again, even to another server, is accepted once and makes one run', () => {
    const story = new Story()
    story.tell(SensorEvaluated, push(1, 'a'))
    expect(requestOf(story, 1, 'a').requested()).toEqual({ kind: 'applied' })
    expect(story.tell(SensorEvaluated, push(1, 'a'))).toEqual({ kind: 'duplicate' })
    story.tell(SensorEvaluated, push(1, 'b'))
    expect(requestOf(story, 1, 'b').requested(['other'])).toEqual({ kind: 'ignored', reason: 'evaluation_not_accepted' })
    expect(story.row(sensorEvals, evalId(1, 'b'))).toMatchObject({ status: 'skipped_duplicate', accepted: false })
    expect(message(story)).toMatchObject({ status: 'accepted', accepted_eval_id: evalId(1, 'a') })
    expect(story.row(sensorState, 'hook')?.state_version, 'a message leaves the cursor of polls alone').toBe(0)
  })

  test('[A20] is known after a restart, when it is in a file', () => {
    const story = new Story()
    story.tell(SensorEvaluated, push(1, 'a'))
    story.bench.seal()
    story.bench.restart()
    story.tell(SensorEvaluated, push(2, 'b'))
    expect(message(story)).toMatchObject({ accepted_eval_id: evalId(1, 'a'), revision: 1 })
  })

  test('[A20] whose evaluation failed is not used up: the next delivery is the next try, and its run is made', () => {
    const story = new Story()
    story.tell(SensorEvaluated, failing(1, 'a'))
    expect(deliveryOf(message(story), 'body')).toEqual({ kind: 'evaluate', try: 2 })
    expect(story.row(sensorState, 'hook')).toMatchObject({
      status: 'ERROR',
      consecutive_errors: 1,
      last_error: 'no such column',
    })
    expect(requestOf(story, 1, 'a').requested()).toEqual({ kind: 'ignored', reason: 'evaluation_failed' })
    story.tell(SensorEvaluated, push(2, 'b'))
    expect(requestOf(story, 2, 'b').requested()).toEqual({ kind: 'applied' })
    expect(story.row(sensorState, 'hook')).toMatchObject({ status: 'ACTIVE', consecutive_errors: 0, last_error: null })
    expect(deliveryOf(message(story), 'body')).toEqual({ kind: 'accepted', eval_id: evalId(2, 'b') })
  })

  test('[A20] at which two servers fail at once has used one try, and the one that succeeds counts', () => {
    const story = new Story()
    story.tell(SensorEvaluated, failing(1, 'a'))
    story.tell(SensorEvaluated, failing(1, 'b'))
    expect(message(story)).toMatchObject({ tries: 1, status: 'failing' })
    expect(story.row(sensorState, 'hook')?.consecutive_errors).toBe(1)
    story.tell(SensorEvaluated, push(1, 'c'))
    expect(message(story)).toMatchObject({ status: 'accepted', accepted_eval_id: evalId(1, 'c') })
  })

  test('[A27] that failed too often is a dead letter until it is replayed, and then has as many tries as a new one', () => {
    const story = new Story()
    story.tell(SensorEvaluated, failing(1, 'a'))
    story.tell(SensorEvaluated, failing(2, 'b'))
    const dead = { status: 'dead', tries: 2, last_error: 'no such column', dead_since: Date.parse(story.time()) }
    expect(message(story)).toMatchObject(dead)
    expect(story.row(sensorState, 'hook')?.dead_letters).toBe(1)
    expect(deliveryOf(message(story), 'body')).toEqual({ kind: 'dead' })
    story.tell(SensorMessageReplayed, replay)
    expect(message(story)).toMatchObject({ status: 'failing', replayed_by: 'ada', dead_since: null })
    expect(story.row(sensorState, 'hook')?.dead_letters).toBe(0)
    story.tell(SensorEvaluated, failing(3, 'c'))
    expect(deliveryOf(message(story), 'body')).toEqual({ kind: 'evaluate', try: 4 })
    story.tell(SensorEvaluated, failing(4, 'd'))
    expect(message(story)?.status).toBe('dead')
    expect(story.tell(SensorMessageReplayed, replay), 'the same request again').toEqual({ kind: 'duplicate' })
    story.tell(SensorMessageReplayed, { ...replay, request_id: 'r2' })
    story.tell(SensorEvaluated, push(5, 'e'))
    expect(message(story)).toMatchObject({ status: 'accepted', last_error: null })
    expect(story.row(sensorState, 'hook')?.dead_letters).toBe(0)
  })

  test('[A28] with the id of an accepted one and another body is a conflict on record, once for each body, and counts for nothing', () => {
    const story = new Story()
    story.tell(SensorEvaluated, push(1, 'a'))
    expect(deliveryOf(message(story), 'forged')).toEqual({ kind: 'conflict', eval_id: evalId(1, 'a') })
    const forged = { sensor_id: 'hook', message_id: 'm1', body_hash: 'forged', body_size: 9 }
    expect(story.tell(SensorMessageConflicted, forged)).toEqual({ kind: 'applied' })
    expect(story.tell(SensorMessageConflicted, forged)).toEqual({ kind: 'duplicate' })
    story.tell(SensorEvaluated, push(2, 'b', 'another'))
    expect(story.rows(sensorMessageConflicts)).toMatchObject([
      { body_hash: 'another', body_size: 4, accepted_body_hash: 'body', accepted_body_size: 4 },
      { body_hash: 'forged', body_size: 9, accepted_eval_id: evalId(1, 'a') },
    ])
    expect(message(story)).toMatchObject({ body_hash: 'body', accepted_eval_id: evalId(1, 'a') })
  })
})
