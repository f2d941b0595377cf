import { ServoError } from './error.ts'

/** States what must be true here; a failure is a bug of ours, never bad input. */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new ServoError('bug', 'assertion_failed', message, { hint: 'This is a bug in Servo. Please report it with the message above.' })
}

/** For the end of a switch over a union: the compiler proves it is never reached. */
export function unreachable(value: never): never {
  throw new ServoError('bug', 'unreachable', `unexpected value ${JSON.stringify(value)}`)
}
