import { defineEvent } from '../../model/event.ts'
import { aboutTimer, advanceTimer, timerId, timerPayload, wait } from './timer.ts'

export const TimerEnqueued = defineEvent({
  type: 'TimerEnqueued',
  version: 1,
  doc: 'The queue took an alarm.',
  payload: timerPayload,
  idempotencyKey: (timer) => `timer_enq:${timerId(timer)}`,
  dedup: 'structure',
  about: aboutTimer,
  fold(context) {
    const phase = wait(context.rows, context.payload)
    return phase === 'now' ? advanceTimer(context, 'ENQUEUED') : phase
  },
})
