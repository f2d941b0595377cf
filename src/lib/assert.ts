import { ServoError } from './error.ts'

/** States what must be true here; a failure is a bug of ours, never bad input. */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition)
    throw new ServoError('bug', 'assertion_failed', message, {
      hint: 'This is a bug in Servo. Please report it with the message above.',
    })
}
