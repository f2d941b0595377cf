import { ServoError } from './error.ts'

/** Asserts an invariant. A failure is a bug in Servo, never bad input. */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition)
    throw new ServoError('bug', 'assertion_failed', message, {
      hint: 'This is a bug in Servo. Please report it with the message above.',
    })
}
