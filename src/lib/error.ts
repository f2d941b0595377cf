/** The kind of an error, by what the caller can do about it. HTTP status and exit code derive from this, at their edges. */
export type ErrorKind = 'invalid' | 'not_found' | 'conflict' | 'unavailable' | 'corrupt' | 'bug'

export interface ErrorDetails {
  /** The next step for the reader. */
  hint?: string
  /** The facts, for programs and logs. */
  facts?: Record<string, unknown>
  cause?: unknown
}

/**
 * The one error class of Servo. `kind` and `code` are stable, the message is free to change.
 * Test errors by `kind` or `code`, never by `instanceof`: copies of a package multiply.
 */
export class ServoError extends Error {
  readonly kind: ErrorKind
  readonly code: string
  readonly hint: string | undefined
  readonly facts: Record<string, unknown>

  constructor(kind: ErrorKind, code: string, message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause })
    this.name = 'ServoError'
    this.kind = kind
    this.code = code
    this.hint = details.hint
    this.facts = details.facts ?? {}
  }

  /** The field of a request that is wrong, as a path with dots, if it is one. */
  get field(): string | undefined {
    const { field } = this.facts
    return typeof field === 'string' ? field : undefined
  }
}

export function isServoError(error: unknown, kind?: ErrorKind): error is ServoError {
  try {
    if (!(error instanceof Error) || error.name !== 'ServoError') return false
    return kind === undefined || ('kind' in error && error.kind === kind)
  } catch {
    // An error of user code may throw when it is looked at.
    return false
  }
}

/** True for an error of Node or of the system with this code, such as `ENOENT`. */
export function hasErrorCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code
}

/** The text of anything that was thrown, even if it throws when it is looked at. */
export function messageOf(error: unknown): string {
  try {
    return error instanceof Error ? error.message : String(error)
  } catch {
    return 'an error that cannot be read'
  }
}
