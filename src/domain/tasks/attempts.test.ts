import { describe, expect, test } from 'vitest'
import { Story } from '../../testing/histories/story.ts'
import { DispatchRequested } from '../dispatch/dispatch-requested.event.ts'
import { taskAttempts } from './task-attempts.table.ts'
import { TaskFinished } from './task-finished.event.ts'

describe('an attempt', () => {
  test('[T12] begins with its dispatch, belongs to the first worker that starts it, and ends with its outcome', () => {
    const story = new Story()
    const run = story.run('report', { orders: [] })
    expect(run.states).toEqual({ orders: 'READY' })
    run.dispatched('orders')
    expect(run.states).toEqual({ orders: 'DISPATCHED' })
    run.started('orders', 1, 'worker-1')
    expect(run.started('orders', 1, 'worker-2')).toEqual({ kind: 'duplicate' })
    expect(story.row(taskAttempts, run.runId, 'orders', 1)).toMatchObject({ state: 'RUNNING', worker_id: 'worker-1' })
    run.succeeded('orders')
    expect(run.task('orders')).toMatchObject({ state: 'SUCCEEDED', materialization_id: 'orders-1' })
    expect(run.row).toMatchObject({ state: 'SUCCEEDED', tasks_succeeded: 1 })
  })

  test('[F5][I3] is the same when its outcome arrives before its dispatch: the outcome waits', () => {
    const run = new Story().run('report', { orders: [] })
    expect(run.succeeded('orders')).toMatchObject({ kind: 'parked', reason: 'waiting' })
    expect(run.states).toEqual({ orders: 'READY' })
    run.dispatched('orders')
    expect(run.states).toEqual({ orders: 'SUCCEEDED' })
  })

  test('[R1] that failed is tried again when its alarm goes off, as often as the task allows', () => {
    const run = new Story().run('report', { orders: [] }, { attempts: 2 })
    run.dispatched('orders')
    run.failed('orders')
    expect(run.task('orders')).toMatchObject({ state: 'RETRY_WAIT', attempt: 1 })
    run.retryDue('orders')
    expect(run.task('orders')).toMatchObject({ state: 'READY', attempt: 2, attempt_id: null })
    run.dispatched('orders', 2)
    run.failed('orders', 2)
    expect(run.task('orders')).toMatchObject({ state: 'FAILED', attempt: 2, error_message: 'it did not work' })
    expect(run.row?.state).toBe('FAILED')
  })

  test('[R1] whose failure is final is not tried again', () => {
    const run = new Story().run('report', { orders: [] }, { attempts: 5 })
    run.dispatched('orders')
    run.gaveUp('orders')
    expect(run.states).toEqual({ orders: 'FAILED' })
  })

  test('[T7][I9] a late outcome of an earlier attempt changes nothing', () => {
    const run = new Story().run('report', { orders: [] }, { attempts: 2 })
    run.dispatched('orders')
    run.failed('orders')
    run.retryDue('orders')
    run.dispatched('orders', 2)
    run.started('orders', 2)
    expect(run.succeeded('orders', 1)).toEqual({ kind: 'ignored', reason: 'stale_attempt' })
    expect(run.task('orders')).toMatchObject({ state: 'RUNNING', attempt: 2, materialization_id: null })
  })

  test('[T7][I9] of two outcomes of one attempt the first counts, whichever was written first', () => {
    const story = new Story()
    const run = story.run('report', { orders: [] })
    const byWorker = story.write(TaskFinished, { ...run.attempt('orders'), outcome: 'SUCCEEDED', completed_at: story.time() })
    run.dispatched('orders')
    run.gaveUp('orders')
    expect(story.hear(byWorker)).toEqual({ kind: 'ignored', reason: 'run_over' })
    expect(run.states).toEqual({ orders: 'FAILED' })
  })

  test('[T7][I9] an outcome that was told stays, also while the task waits for its next attempt', () => {
    const run = new Story().run('report', { orders: [] }, { attempts: 2 })
    run.dispatched('orders')
    run.failed('orders')
    expect(run.succeeded('orders')).toEqual({ kind: 'ignored', reason: 'stale_attempt' })
    expect(run.started('orders')).toEqual({ kind: 'ignored', reason: 'stale_attempt' })
    expect(run.task('orders')).toMatchObject({ state: 'RETRY_WAIT', attempt: 1, materialization_id: null })
  })

  test('[T6][I9] is spoken for only by who has its id', () => {
    const story = new Story()
    const run = story.run('report', { orders: [] })
    run.dispatched('orders')
    const forged = { ...run.attempt('orders'), attempt_id: 'a_guess' }
    const verdict = story.tell(TaskFinished, { ...forged, outcome: 'SUCCEEDED', completed_at: story.time() })
    expect(verdict).toEqual({ kind: 'ignored', reason: 'wrong_attempt_id' })
    expect(run.states).toEqual({ orders: 'DISPATCHED' })
  })

  test('[T6] is not dispatched under an id that its run, task and number do not give', () => {
    const story = new Story()
    const run = story.run('report', { orders: [] })
    const forged = { ...run.attempt('orders'), attempt_id: 'a_guess', worker_queue: 'default' }
    expect(story.tell(DispatchRequested, forged)).toEqual({ kind: 'ignored', reason: 'wrong_attempt_id' })
    expect(run.states).toEqual({ orders: 'READY' })
  })

  test('[T5][I8] is not dispatched before the one before it has ended', () => {
    const run = new Story().run('report', { orders: [] }, { attempts: 3 })
    expect(run.dispatched('orders', 3), 'the first is ready').toMatchObject({ kind: 'parked' })
    expect(run.task('orders')).toMatchObject({ state: 'READY', attempt: 1 })
    run.dispatched('orders')
    expect(run.dispatched('orders', 2)).toMatchObject({ kind: 'parked' })
    run.failed('orders')
    expect(run.states).toEqual({ orders: 'RETRY_WAIT' })
    run.retryDue('orders')
    expect(run.task('orders')).toMatchObject({ state: 'DISPATCHED', attempt: 2 })
  })
})
