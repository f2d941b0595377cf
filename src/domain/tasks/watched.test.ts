import { describe, expect, test } from 'vitest'
import { HOUR_MS, SECOND_MS, toMs } from '../../lib/time.ts'
import { type Controller, MAX_LAG_MS, mustWait } from '../../model/controller.ts'
import { type RunStory, Story } from '../../testing/histories/story.ts'
import { DispatchEnqueued } from '../dispatch/dispatch-enqueued.event.ts'
import { type DispatchRow, dispatchOutbox } from '../dispatch/dispatch-outbox.table.ts'
import { DispatchRepeated } from '../dispatch/dispatch-repeated.event.ts'
import { DispatchRequested } from '../dispatch/dispatch-requested.event.ts'
import { stuckDispatchController } from '../dispatch/stuck.controller.ts'
import { cancelController } from '../runs/cancel.controller.ts'
import { runs } from '../runs/runs.table.ts'
import { alarmController } from '../timers/alarm.controller.ts'
import { TimerRequested } from '../timers/timer-requested.event.ts'
import { timers } from '../timers/timers.table.ts'
import { deadlineController } from './deadline.controller.ts'
import { heartbeatController, onHeartbeatCheck } from './heartbeat.controller.ts'

/** One attempt on a remote worker, and what controllers decide about it. */
class Watch {
  readonly story = new Story()
  readonly run: RunStory = this.story.run('report', { model: [] })

  constructor() {
    this.story.tell(DispatchRequested, { ...this.run.attempt('model'), worker_queue: 'gpu' })
  }

  get now(): number {
    return toMs(this.story.time())
  }

  /** Shows the controller everything, as a process that has just started does, and asks it. */
  ask(controller: Controller, asking: Asking = {}): Shown[] {
    for (const table of controller.watches)
      for (const row of this.story.bench.state.hotTable(table).all()) controller.observe(table, row)
    return this.again(controller, asking)
  }

  again(controller: Controller, { after = 0, lagMs = 0 }: Asking = {}): Shown[] {
    const now = this.now + after
    // As the loop does it.
    if (lagMs > MAX_LAG_MS && mustWait(controller, now)) return []
    const decided = controller.decide({ rows: this.story.bench.state, now, lagMs }).flat()
    return decided.map(({ definition, payload }) => ({ type: definition.type, ...(payload as object) }))
  }

  /** A worker begins it, and the alarm is set. */
  begin(): void {
    this.run.started('model')
    for (const { type: _, ...timer } of this.ask(heartbeatController())) this.story.tell(TimerRequested, timer as never)
  }
}

interface Asking {
  readonly after?: number
  readonly lagMs?: number
}
type Shown = { readonly type: string; readonly fire_at?: string }

describe('an attempt on a remote worker', () => {
  test('is watched by an alarm from when it begins, set once', () => {
    const watch = new Watch()
    expect(watch.ask(heartbeatController())).toEqual([])
    watch.run.started('model')
    const [alarm] = watch.ask(heartbeatController())
    expect(alarm).toMatchObject({ type: 'TimerRequested', timer_type: 'HEARTBEAT_CHECK', task_key: 'model', attempt: 1 })
    const waits = toMs(alarm?.fire_at as string) - watch.now
    expect(waits).toBeGreaterThanOrEqual(90 * SECOND_MS)
    expect(waits).toBeLessThan(95 * SECOND_MS)
    watch.begin()
    expect(watch.ask(heartbeatController())).toEqual([])
    expect(watch.ask(deadlineController()), 'without a timeout there is no deadline').toEqual([])
  })

  test('on a local worker is watched by the process that started it', () => {
    const watch = new Watch()
    watch.run.started('model', 1, 'local:instance-1')
    expect(watch.ask(heartbeatController())).toEqual([])
  })

  test('[O6] is not given up while facts may be unread: the alarm looks again later', () => {
    const watch = new Watch()
    watch.begin()
    const alarm = alarmController({ HEARTBEAT_CHECK: onHeartbeatCheck(() => 0) })
    const due = 100 * SECOND_MS
    expect(watch.ask(alarm, { after: due, lagMs: MAX_LAG_MS + 1 })).toEqual([])
    const given = watch.again(alarm, { after: due + 10 * SECOND_MS })
    expect(given).toMatchObject([{ type: 'TimerFired' }, { type: 'TaskFinished', outcome: 'FAILED', error_category: 'lost' }])
  })

  test('[W3] that was heard of in memory alone is not silent', () => {
    const watch = new Watch()
    watch.begin()
    const heard = watch.now + 50 * SECOND_MS
    const alarm = alarmController({ HEARTBEAT_CHECK: onHeartbeatCheck(() => heard) })
    const [, next] = watch.ask(alarm, { after: 100 * SECOND_MS })
    expect(next?.type).toBe('TimerRequested')
    expect(toMs(next?.fire_at as string) - heard).toBeGreaterThanOrEqual(90 * SECOND_MS)
    expect(watch.story.rows(timers)).toHaveLength(1)
  })
})

test('[W3] an alarm that goes off long after it was due gives nobody up: the machine slept, and heard nobody', () => {
  const watch = new Watch()
  watch.begin()
  const alarm = alarmController({ HEARTBEAT_CHECK: onHeartbeatCheck(() => 0) })
  const [, next] = watch.ask(alarm, { after: HOUR_MS })
  expect(next?.type).toBe('TimerRequested')
  expect(toMs(next?.fire_at as string)).toBeGreaterThanOrEqual(watch.now + HOUR_MS + 90 * SECOND_MS)
})

describe('a dispatch that a queue took', () => {
  const stuck = () => stuckDispatchController(() => 60 * SECOND_MS)

  function taken(): Watch {
    const watch = new Watch()
    const { attempt_id: _, ...place } = watch.run.attempt('model')
    watch.story.tell(DispatchEnqueued, { ...place, status: 'CREATED' })
    return watch
  }

  test('[D4] and no worker began is offered again, once, however long nobody looked', () => {
    const watch = taken()
    const controller = stuck()
    const created = watch.story.rows(dispatchOutbox)[0]?.created_at as number
    expect(watch.ask(controller)).toEqual([])
    expect(controller.wakeAt?.()).toBe(created + 60 * SECOND_MS)
    const late = created + 10 * 60 * SECOND_MS - watch.now
    expect(watch.ask(stuck(), { after: late })).toMatchObject([{ type: 'DispatchRepeated', attempt: 1, offer: 11 }])
  })

  test('[O6] is not offered again while facts may be unread', () => {
    const watch = taken()
    const controller = stuck()
    expect(watch.ask(controller, { after: 60 * SECOND_MS, lagMs: MAX_LAG_MS + 1 })).toEqual([])
    expect(watch.again(controller, { after: 70 * SECOND_MS })).toMatchObject([{ type: 'DispatchRepeated', offer: 2 }])
  })

  test('[D4] and a worker began, or nobody has taken, is left alone', () => {
    expect(new Watch().ask(stuck(), { after: 60 * SECOND_MS }), 'whoever asks gets it').toEqual([])
    const begun = taken()
    begun.run.started('model')
    expect(begun.ask(stuck(), { after: 60 * SECOND_MS })).toEqual([])
    const cancelled = taken()
    cancelled.run.cancelled()
    expect(cancelled.ask(stuck(), { after: 60 * SECOND_MS })).toEqual([])
  })

  test('is acknowledged for the offer that it answers: what a queue says late of an earlier one changes nothing', () => {
    const watch = taken()
    const { attempt_id: _, ...place } = watch.run.attempt('model')
    const row = (): DispatchRow | undefined => watch.story.rows(dispatchOutbox)[0]
    watch.story.tell(DispatchRepeated, { ...place, offer: 2 })
    expect(row()).toMatchObject({ status: 'PENDING', offer: 2 })
    expect(watch.story.tell(DispatchEnqueued, { ...place, status: 'CREATED' })).toEqual({ kind: 'duplicate' })
    watch.story.tell(DispatchEnqueued, { ...place, status: 'CREATED', offer: 2 })
    expect(row()).toMatchObject({ status: 'CREATED', offer: 2 })
    watch.run.started('model')
    expect(watch.story.tell(DispatchRepeated, { ...place, offer: 3 })).toEqual({ kind: 'duplicate' })
    expect(row()).toMatchObject({ status: 'ACKED', offer: null })
  })
})

describe('a cancelled run', () => {
  test('[O6] waits for its workers, and longer while facts may be unread; then it ends without them', () => {
    const watch = new Watch()
    watch.run.started('model')
    watch.run.cancelled()
    const controller = cancelController(() => 10 * SECOND_MS)
    const asked = watch.story.rows(runs)[0]?.cancel_requested_at as number
    expect(watch.ask(controller)).toEqual([])
    expect(controller.wakeAt?.()).toBe(asked + 12 * SECOND_MS)
    expect(watch.again(controller, { after: 12 * SECOND_MS, lagMs: MAX_LAG_MS + 1 })).toEqual([])
    expect(watch.again(controller, { after: 22 * SECOND_MS })).toMatchObject([{ type: 'TaskFinished', outcome: 'CANCELLED' }])
    expect(controller.wakeAt?.()).toBeUndefined()
  })
})
