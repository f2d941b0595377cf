import pc from 'picocolors'
import type { Colors } from 'picocolors/types.js'
import { type ErrorKind, isServoError, messageOf, ServoError } from '../lib/error.ts'
import { STATE_MOVED } from '../ports/state-moved.ts'
import { type Cell, tableRows } from './columns.ts'
import { pickFields } from './json/chosen-fields.ts'
import { withoutInternals } from './json/internals.ts'

/** 0 is fine, 1 is "done, and not fine": a run that failed, a file that is damaged. With 2 and 3 nothing was done. */
const exitCodes: Record<ErrorKind, number> = { invalid: 2, not_found: 2, conflict: 2, corrupt: 1, unavailable: 3, bug: 4 }

/** A leader that was replaced, or whose state is gone, is not a mistake of its user: a supervisor may start it again. */
export const exitCodeOf = (kind: ErrorKind, code: string): number =>
  code === 'deposed' || code === STATE_MOVED ? exitCodes.unavailable : exitCodes[kind]

/** Colours for a stream that shows them. Pipes, files and CI get none, unless FORCE_COLOR is set. */
function coloursOf(stream: NodeJS.WriteStream): Colors {
  const { NO_COLOR, FORCE_COLOR, TERM } = process.env
  return pc.createColors(!NO_COLOR && (Boolean(FORCE_COLOR) || (stream.isTTY === true && TERM !== 'dumb')))
}

/** True where lines can be drawn in place. CI has terminals that nobody watches, and NO_COLOR asks for text without escapes. */
export function isLiveTerminal(): boolean {
  const { NO_COLOR, CI, TERM } = process.env
  return process.stdout.isTTY === true && !NO_COLOR && !CI && TERM !== 'dumb'
}

/** Lines that stay below everything that is printed. */
export interface LinesBelow {
  hide(): void
  draw(): void
}

let below: LinesBelow | undefined
export function showBelow(lines: LinesBelow | undefined): void {
  below = lines
}

function write(stream: NodeJS.WriteStream, text: string): void {
  if (isUnread && stream === process.stdout) return
  below?.hide()
  stream.write(`${text}\n`)
  below?.draw()
}

/** Prints a line for the person at the terminal, not for a program that reads the output. */
export const complain = (text: string): void => write(process.stderr, text)

export const colours = coloursOf(process.stdout)
export const errorColours = coloursOf(process.stderr)

let json = false
let fields: readonly string[] | undefined
/** From now on answers and errors are printed as JSON, or are not; of answers only these fields, if any are named. */
export function speakJson(isOn: boolean, chosen?: readonly string[]): void {
  json = isOn
  fields = chosen
}
export const speaksJson = (): boolean => json
/** The fields that the user chose; undefined for all of them. */
export const chosenColumns = (): readonly string[] | undefined => fields

/** Longer than any name, and most paths. */
const MOST_ECHOED = 200
const ECHOED = 60
let longArgs: readonly string[] = []
let longWords: readonly string[] = []
/** These are the arguments of the command: of very long ones errors repeat only the beginning. */
export function echoShortly(args: readonly string[]): void {
  const words = args.flatMap((arg) => [arg, ...arg.split(/=|\.\./)])
  longArgs = args.filter((arg) => arg.length > MOST_ECHOED)
  longWords = words.filter((word) => word.length > MOST_ECHOED).sort((a, b) => b.length - a.length)
}

const LONG_PART = new RegExp(`[^\\s"'\`]{${MOST_ECHOED + 1},}`, 'g')

/** A text for the user, with the beginning of a very long argument instead of all of it. */
export function shortly(text: string): string {
  if (longArgs.length === 0) return text
  const beginning = (word: string): string => `${word.slice(0, ECHOED).toWellFormed()}…`
  const isEchoed = (part: string): boolean => longArgs.some((arg) => arg.includes(part.slice(0, MOST_ECHOED)))
  const cut = longWords.reduce((left, word) => left.replaceAll(word, () => beginning(word)), text)
  // A name in a query or in a selection is part of an argument.
  return cut.replace(LONG_PART, (part) => (isEchoed(part) ? beginning(part) : part))
}

/** Takes what is told besides answers. */
export interface LogSink {
  info(message: string, fields?: object): void
  warn(message: string, fields?: object): void
  error(message: string, fields?: object): void
}

let log: LogSink | undefined
/** From now on errors, warnings and notes go to this log. */
export function logInstead(to: LogSink): void {
  log = to
}

/** Prints what went wrong and what to do, and sets the exit code. No stack: that is for SERVO_DEBUG=1. */
export function fail(thrown: unknown): void {
  const error = ofTheSystem(thrown)
  const known = isServoError(error)
  const { kind, code, hint: given } = known ? error : { kind: 'bug' as const, code: 'internal', hint: undefined }
  const [message, hint] = [shortly(messageOf(error)), given === undefined ? undefined : shortly(given)]
  process.exitCode = exitCodeOf(kind, code)
  const stack = process.env['SERVO_DEBUG'] && thrown instanceof Error ? String(thrown.stack) : undefined
  if (log !== undefined) log.error(message, { code, hint, stack })
  else if (json) complain(JSON.stringify({ error: { kind, code, message, hint } }))
  else {
    complain(`${errorColours.red('error:')} ${printable(message)}`)
    if (hint !== undefined) complain(`${errorColours.cyan('hint:')} ${printable(hint)}`)
  }
  if (log === undefined && stack !== undefined) complain(printable(stack))
}

const SYSTEM_HINTS: Readonly<Record<string, string>> = {
  EACCES: 'Check the permissions and the owner.',
  EPERM: 'Check the permissions and the owner.',
  EROFS: 'The disk is read-only. Copy the project to another.',
  ENOSPC: 'The disk is full. Free some space.',
  ENOTDIR: 'A file is where a folder should be. Move it away.',
  ENAMETOOLONG: 'Use shorter names.',
  EEXIST: 'A file is where a folder should be. Move it away.',
}

/** An error of the operating system is not a bug of Servo, which cannot repair it. */
function ofTheSystem(error: unknown): unknown {
  if (!(error instanceof Error) || isServoError(error) || !('code' in error)) return error
  const hint = SYSTEM_HINTS[String(error.code)]
  if (hint === undefined) return error
  const path = 'path' in error ? error.path : undefined
  const what = path === undefined ? error.message : `${path} cannot be written: ${error.message.split(',', 1)[0]}`
  return new ServoError('unavailable', 'system_refused', what, { hint, cause: error })
}

/** Prints a problem that stops nothing, but that the user should know of. */
export function warn(error: unknown): void {
  if (log !== undefined) {
    log.warn(messageOf(error), isServoError(error) ? { code: error.code, hint: error.hint } : {})
    return
  }
  const text = json
    ? JSON.stringify({ warning: { message: messageOf(error) } })
    : `${errorColours.yellow('warning:')} ${printable(messageOf(error))}`
  complain(text)
}

/** Tells the user why nothing seems to happen, or how far to trust an answer. */
export function note(text: string): void {
  if (log !== undefined) log.info(text)
  else complain(json ? JSON.stringify({ note: text }) : errorColours.dim(printable(text)))
}

let isUnread = false
let endsUnread = false
/** From now on the command does nothing but print an answer that may be long or never end: without a reader it ends. */
export function endWhenUnread(): void {
  endsUnread = true
}

let worksUnread = false
/** From now on the command does work whose end counts, written down or not: no failure of the output stops it or changes its exit code. */
export function workUnread(): void {
  worksUnread = true
}

/**
 * `servo run … | head` closes the output before the command is done, which is not an error. The command goes on silently, because others
 * rely on its work and on its exit code. A full disk is an error, which ends a command that only answers.
 */
let isWatched = false
export function watchOutput(): void {
  endsUnread = false
  worksUnread = false
  if (isWatched) return
  isWatched = true
  // Nobody is left to be told.
  process.stderr.on('error', () => undefined)
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (isUnread) return
    isUnread = true
    const failed = error.code === 'EPIPE' ? undefined : outputFailed(error)
    if (worksUnread && failed !== undefined) warn(failed)
    if (worksUnread || (failed === undefined && !endsUnread)) return
    if (failed !== undefined) fail(failed)
    process.exit()
  })
}

const outputFailed = (cause: Error): ServoError =>
  new ServoError('unavailable', 'output_failed', `the output cannot be written: ${cause.message}`, { cause })

export function print(text: string): void {
  write(process.stdout, text)
}

/** The width of the screen. A pipe or file has none: nothing is cut there. */
export const screenWidth = (): number => (process.stdout.isTTY ? process.stdout.columns : Number.POSITIVE_INFINITY)

/** Prints a table below its heads. On a screen every line fits: see `tableRows`. */
export function printTable(heads: readonly Cell[], rows: readonly (readonly Cell[])[], indent = ''): void {
  for (const text of tableRows([heads, ...rows], screenWidth() - indent.length)) print(indent + text)
}

/** The heads of columns; those of numbers stand to the right. */
export const headsOf = (names: readonly string[], right: readonly string[] = []): Cell[] =>
  names.map((text) => ({ text, paint: colours.dim, right: right.includes(text) }))

/** Prints the answer of a command: what users can do something with, and of that the fields that they chose. */
export function printJson(value: unknown): void {
  print(JSON.stringify(shownValue(value), null, 2))
}

/** The same as one line, for commands that go on printing. */
export function printJsonLine(value: unknown): void {
  print(JSON.stringify(shownValue(value)))
}

function shownValue(value: unknown): unknown {
  const shown = withoutInternals(value)
  return fields === undefined ? shown : pickFields(shown, fields)
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is replaced.
const UNPRINTABLE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g

/** Makes any text safe for a terminal: characters that could move the cursor or hide something are shown as their code. */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)
}
