import { defineEvent } from '../../model/event.ts'
import { aboutTimer, advanceTimer, timerId, timerPayload, wait } from './timer.ts'

export const TimerCancelled = defineEvent({
  type: 'TimerCancelled',
  version: 1,
  doc: 'An alarm is not wanted any more.',
  payload: timerPayload,
  idempotencyKey: (timer) => `timer_cancel:${timerId(timer)}`,
  dedup: 'structure',
  about: aboutTimer,
  fold(context) {
    const phase = wait(context.rows, context.payload)
    return phase === 'now' ? advanceTimer(context, 'CANCELLED') : phase
  },
})
