import { describe, expect, test } from 'vitest'
import { Story } from '../../testing/histories/story.ts'
import { TimerFired } from './timer-fired.event.ts'
import { TimerRequested } from './timer-requested.event.ts'
import { timers } from './timers.table.ts'

describe('an alarm', () => {
  test('is set and goes off', () => {
    const story = new Story()
    const { runId: run_id } = story.run('report', { orders: [] })
    const timer = { timer_type: 'SLA_CHECK', run_id, fire_at: story.time(60) } as const
    story.tell(TimerRequested, timer)
    expect(story.rows(timers)).toMatchObject([{ subject: `run:${run_id}`, state: 'SCHEDULED' }])
    story.tell(TimerFired, timer)
    expect(story.rows(timers)).toMatchObject([{ state: 'FIRED' }])
  })

  test('[F5][I3] that goes off before anybody set it waits to be set', () => {
    const story = new Story()
    const { runId: run_id } = story.run('report', { orders: [] })
    const timer = { timer_type: 'SLA_CHECK', run_id, fire_at: story.time(60) } as const
    expect(story.tell(TimerFired, timer)).toMatchObject({ kind: 'parked' })
    story.tell(TimerRequested, timer)
    expect(story.rows(timers)).toMatchObject([{ state: 'FIRED' }])
  })

  test('[T11] for the same thing replaces the one before; what is still told of that one changes nothing', () => {
    const story = new Story()
    const run = story.run('report', { orders: [] })
    run.dispatched('orders')
    const { attempt_id: _, ...place } = run.attempt('orders')
    const watch = (seconds: number) => ({ timer_type: 'HEARTBEAT_CHECK', ...place, fire_at: story.time(seconds) }) as const
    const [sooner, later] = [watch(60), watch(120)]
    story.tell(TimerRequested, sooner)
    story.tell(TimerRequested, later)
    const soonest = watch(30)
    expect(story.tell(TimerRequested, soonest)).toEqual({ kind: 'ignored', reason: 'replaced_timer' })
    expect(story.tell(TimerFired, sooner)).toEqual({ kind: 'ignored', reason: 'replaced_timer' })
    expect(story.rows(timers)).toMatchObject([{ timer_type: 'HEARTBEAT_CHECK', state: 'SCHEDULED' }])
    run.succeeded('orders')
    expect(story.rows(timers), 'nothing is left to watch').toEqual([])
  })

  test('for a retry starts the next attempt, once', () => {
    const run = new Story().run('report', { orders: [] }, { attempts: 5 })
    run.dispatched('orders')
    run.failed('orders')
    expect(run.retryDue('orders')).toEqual({ kind: 'applied' })
    expect(run.retryDue('orders')).toEqual({ kind: 'ignored', reason: 'stale_attempt' })
    expect(run.task('orders')).toMatchObject({ attempt: 2, state: 'READY' })
  })

  test('for a retry that goes off too early waits for the attempt to fail', () => {
    const run = new Story().run('report', { orders: [] }, { attempts: 5 })
    run.dispatched('orders')
    expect(run.retryDue('orders')).toMatchObject({ kind: 'parked' })
    run.failed('orders')
    expect(run.task('orders')).toMatchObject({ attempt: 2, state: 'READY' })
  })

  test('[T11] that went off goes off once, and its row stays until another is set for the same thing', () => {
    const story = new Story()
    const { runId: run_id } = story.run('report', { orders: [] })
    const timer = (seconds: number) => ({ timer_type: 'SLA_CHECK', run_id, fire_at: story.time(seconds) }) as const
    const first = timer(60)
    story.tell(TimerRequested, first)
    story.tell(TimerFired, first)
    expect(story.tell(TimerFired, first)).toEqual({ kind: 'duplicate' })
    story.tell(TimerRequested, timer(120))
    expect(story.rows(timers)).toMatchObject([{ state: 'SCHEDULED' }])
  })
})
