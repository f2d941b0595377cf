import pc from 'picocolors'
import type { Colors } from 'picocolors/types.js'
import { type ErrorKind, isServoError, messageOf, ServoError } from '../lib/error.ts'

/** 0 is fine, 1 is "checked, and not fine". */
const exitCodes: Record<ErrorKind, number> = { invalid: 2, not_found: 2, conflict: 1, corrupt: 1, unavailable: 3, bug: 4 }

/** Colours for a stream that shows them. What is piped or redirected gets none, in CI neither, unless FORCE_COLOR asks for them. */
function coloursOf(stream: NodeJS.WriteStream): Colors {
  const { NO_COLOR, FORCE_COLOR, TERM } = process.env
  return pc.createColors(!NO_COLOR && (Boolean(FORCE_COLOR) || (stream.isTTY === true && TERM !== 'dumb')))
}

export const colours = coloursOf(process.stdout)
export const errorColours = coloursOf(process.stderr)

/** Prints what went wrong and what to do, and sets the exit code. No stack: that is for SERVO_DEBUG=1. */
export function fail(error: unknown): void {
  process.stderr.write(`${errorColours.red('error:')} ${printable(messageOf(error))}\n`)
  if (isServoError(error) && error.hint !== undefined) {
    process.stderr.write(`${errorColours.cyan('hint:')} ${printable(error.hint)}\n`)
  }
  if (process.env['SERVO_DEBUG'] && error instanceof Error) process.stderr.write(`${printable(String(error.stack))}\n`)
  process.exitCode = isServoError(error) ? exitCodes[error.kind] : exitCodes.bug
}

/** `servo query … | head` closes our output before we are done; that is no error. A full disk is. */
export function watchOutput(): void {
  process.stderr.on('error', () => process.exit())
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(0)
    fail(new ServoError('unavailable', 'output_failed', `the output cannot be written: ${error.message}`, { cause: error }))
    process.exit()
  })
}

export function print(text: string): void {
  process.stdout.write(`${text}\n`)
}

export function printJson(value: unknown): void {
  print(JSON.stringify(value, null, 2))
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is replaced.
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g

/** Text from anywhere, made safe for a terminal: what could move the cursor or hide something is shown as its code. */
export function printable(text: string): string {
  return text.replace(CONTROL, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)
}
