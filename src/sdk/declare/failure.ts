import { type Duration, durationMs } from '../duration.ts'

/** Of the global registry, so that two copies of the package in one process understand each other. */
const mark = Symbol.for('servo.failure')

type Mark = { readonly fatal: true } | { readonly retryAfterMs: number }

/** Throw it when a retry cannot help: the task fails at once. */
export class Fatal extends Error {
  override readonly name = 'Fatal'
  readonly [mark]: Mark = { fatal: true }
}

/** Throw it to choose the delay before the next attempt, for example from the HTTP header Retry-After. */
export class RetryAfter extends Error {
  override readonly name = 'RetryAfter'
  readonly [mark]: Mark

  constructor(after: Duration, message = `try again after ${after}`, options?: ErrorOptions) {
    super(message, options)
    this[mark] = { retryAfterMs: durationMs(after, 'RetryAfter') }
  }
}

export function isFatal(error: unknown): boolean {
  return 'fatal' in markOf(error)
}

export function retryAfterMs(error: unknown): number | undefined {
  const found = markOf(error)
  return 'retryAfterMs' in found && typeof found.retryAfterMs === 'number' ? found.retryAfterMs : undefined
}

function markOf(error: unknown): object {
  try {
    const found = typeof error === 'object' && error !== null && mark in error ? error[mark] : undefined
    return typeof found === 'object' && found !== null ? { ...found } : {}
  } catch {
    // An error of user code may throw when it is looked at.
    return {}
  }
}
