import { describe, expect, test } from 'vitest'
import { RunStory, Story } from '../../testing/histories/story.ts'
import { TimerRequested } from '../timers/timer-requested.event.ts'
import { timers } from '../timers/timers.table.ts'
import { runKeyConflicts } from './run-key-conflicts.table.ts'
import { runs } from './runs.table.ts'

describe('a run key', () => {
  test('[T1] used again for the same work is the same run', () => {
    const story = new Story()
    const run = new RunStory(story, 'report')
    expect(run.requested(['orders', 'revenue'])).toEqual({ kind: 'applied' })
    expect(run.requested(['revenue', 'orders'])).toEqual({ kind: 'duplicate' })
    expect(story.rows(runs)).toHaveLength(1)
  })

  test('[T1] used again for other work is a conflict on record, and no run', () => {
    const story = new Story()
    const run = new RunStory(story, 'report')
    run.requested(['orders'])
    expect(run.requested(['everything'])).toEqual({ kind: 'ignored', reason: 'run_key_conflict' })
    expect(story.rows(runs)).toHaveLength(1)
    expect(run.row?.asset_selection).toEqual(['orders'])
    expect(story.rows(runKeyConflicts)).toMatchObject([{ run_key: run.runKey, existing_run_id: run.runId }])
  })

  test('[F9][I11] is taken for ever, also when its run is over and sealed', () => {
    const story = new Story()
    const run = story.run('report', {})
    story.bench.seal()
    expect(run.requested()).toEqual({ kind: 'duplicate' })
    expect(run.requested(['everything'])).toEqual({ kind: 'ignored', reason: 'run_key_conflict' })
  })
})

describe('a cancelled run', () => {
  const plan = { done: [], running: [], waiting: [], below: ['running'] }

  test('[T9] ends what has not begun at once, and is over when what runs has ended', () => {
    const run = new Story().run('report', plan)
    run.done('done')
    run.dispatched('running')
    run.cancelled()
    expect(run.states).toEqual({ done: 'SUCCEEDED', running: 'DISPATCHED', waiting: 'CANCELLED', below: 'CANCELLED' })
    expect(run.row).toMatchObject({ state: 'RUNNING', cancel_requested_by: 'ada' })
    run.succeeded('running')
    expect(run.row).toMatchObject({ state: 'CANCELLED', tasks_succeeded: 2, tasks_cancelled: 2 })
  })

  test('[T9] starts no retry: an attempt that fails meanwhile was cancelled', () => {
    const run = new Story().run('report', { orders: [] }, { attempts: 3 })
    run.dispatched('orders')
    run.cancelled()
    run.failed('orders')
    expect(run.states).toEqual({ orders: 'CANCELLED' })
    expect(run.retryDue('orders')).toEqual({ kind: 'ignored', reason: 'run_over' })
  })

  test('[C2] that waited for a retry waits no more, and its alarm is taken away', () => {
    const story = new Story()
    const run = story.run('report', { orders: [] }, { attempts: 3 })
    run.dispatched('orders')
    run.failed('orders')
    const { attempt_id: _, ...place } = run.attempt('orders')
    story.tell(TimerRequested, { timer_type: 'RETRY', ...place, fire_at: story.time(30) })
    expect(story.rows(timers)).toHaveLength(1)
    run.cancelled()
    expect(run.row?.state).toBe('CANCELLED')
    expect(story.rows(timers)).toEqual([])
  })

  test('[C2] that had no plan yet is over at once; a plan that comes later is too late', () => {
    const run = new RunStory(new Story(), 'report')
    run.requested()
    run.cancelled()
    expect(run.row?.state).toBe('CANCELLED')
    expect(run.planned({ orders: [] })).toEqual({ kind: 'ignored', reason: 'run_over' })
  })

  test('[C1] stays as it was when somebody cancels it again, or when it had ended before', () => {
    const story = new Story()
    const run = story.run('report', { orders: [] })
    run.dispatched('orders')
    run.cancelled('ada')
    expect(run.cancelled('grace')).toEqual({ kind: 'duplicate' })
    expect(run.row?.cancel_requested_by).toBe('ada')
    run.succeeded('orders')
    expect(run.row?.state).toBe('SUCCEEDED')
    expect(run.cancelled('grace')).toEqual({ kind: 'ignored', reason: 'run_over' })
  })
})

describe('facts about a run', () => {
  test('[F5] that nobody has requested yet wait for it, and are folded in the order in which they came', () => {
    const run = new RunStory(new Story(), 'report')
    expect(run.planned({ orders: [] })).toMatchObject({ kind: 'parked' })
    run.dispatched('orders')
    run.succeeded('orders')
    expect(run.row).toBeUndefined()
    run.requested()
    expect(run.row).toMatchObject({ state: 'SUCCEEDED', tasks_succeeded: 1 })
  })

  test('[F6] that is over and sealed are recognised, neither parked nor applied', () => {
    const story = new Story()
    const run = story.run('report', { orders: [] })
    run.done('orders')
    const before = story.bench.rows()
    story.bench.seal()
    expect(run.started('orders')).toEqual({ kind: 'ignored', reason: 'sealed' })
    expect(run.cancelled()).toEqual({ kind: 'ignored', reason: 'sealed' })
    expect(story.bench.rows()).toEqual(before)
  })
})
