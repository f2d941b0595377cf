import { ServoError } from '../../lib/error.ts'

/** Refuses a change by somebody who decided on it when the state was another. */
export function checkStateVersion(name: string, { expected, actual }: { expected: number | undefined; actual: number }): void {
  if (expected === undefined || expected === actual) return
  throw new ServoError('conflict', 'state_changed', `${name} is at state version ${actual}, not ${expected}`, {
    hint: 'Somebody changed it. Look at it again, then repeat the request with its current version, or without one.',
    facts: { expected, actual },
  })
}

/** Refuses a change that the present state rules out. */
export const refusedTransition = (
  code: string,
  message: string,
  { current, requested, hint }: { current: string; requested: string; hint: string },
): ServoError => new ServoError('conflict', code, message, { hint, facts: { current, requested } })
