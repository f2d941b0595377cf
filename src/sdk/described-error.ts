import path from 'node:path'
import { boundedDetail, cutMiddle, leftOut, MAX_MESSAGE } from '../contract/error-detail.ts'
import type { ErrorBehind, ErrorDetail } from '../contract/error-schema.ts'
import { isServoError } from '../lib/error.ts'
import { type Frame, placesIn, type SourcePlace } from './caller.ts'
import { shownFields } from './shown-fields.ts'

/** An error as it is reported. */
export interface DescribedError extends ErrorDetail {
  readonly message: string
}

export interface DescribingErrors {
  /** The project folder: paths are relative to it. */
  readonly root: string
  /** Takes secrets out of text. It comes first, because half a secret is not recognised any more. */
  redact?(text: string): string
  /** Where the asset was declared: of use when no frame is in a file of its author. */
  readonly declared?: SourcePlace | undefined
}

/** Deep enough for an error of a library in an error of a library in an error of the author. */
const MAX_DEPTH = 8
/** A chain that a program makes while it is read may have no end. */
const MOST_COUNTED = 1_000
/** As many as fit on a screen, with what led to them. */
const MAX_CAUSES = 16
const MAX_OWN_FRAMES = 10
const MAX_OTHER_FRAMES = 4

/** The folder of the sources, or of what is published: frames in it are ours and help nobody. */
const OURS = path.resolve(import.meta.dirname, '..') + path.sep

/** What was thrown, with everything that helps its author, however strange it is. */
export function describeError(thrown: unknown, describing: DescribingErrors): DescribedError {
  const { hasOwnFrames, message, ...own } = describeOne(thrown, describing)
  const stack = [own.stack, hasOwnFrames ? undefined : declaredAt(describing)].filter((text) => text !== undefined).join('\n')
  const causes = causesOf(thrown, describing)
  return { message, ...boundedDetail({ ...own, stack, causes }) }
}

function declaredAt({ declared, root }: DescribingErrors): string | undefined {
  if (declared?.file === undefined) return undefined
  return `    declared at ${relative(root, declared.file)}${declared.line === undefined ? '' : `:${declared.line}`}`
}

/** Depth first. An error that is its own cause, at whatever distance, comes once. */
function causesOf(thrown: unknown, describing: DescribingErrors): ErrorBehind[] {
  const found: ErrorBehind[] = []
  const seen = new Set<unknown>([thrown])
  const visit = (error: unknown, depth: number): void => {
    const cause = member(error, 'cause')
    const errors = member(error, 'errors')
    if (depth >= MAX_DEPTH) {
      addEnd(cause, depth)
      return
    }
    if (cause !== undefined && cause !== null && !isRepeated(error, cause)) add(cause, 'cause', depth)
    if (isErrorLike(error)) for (const each of listed(errors)) add(each, 'error', depth)
  }
  const add = (error: unknown, as: ErrorBehind['as'], depth: number): void => {
    if (found.length >= MAX_CAUSES || (typeof error === 'object' && seen.has(error))) return
    seen.add(error)
    const { hasOwnFrames, ...described } = describeOne(error, describing, shownCause)
    found.push({ depth, as, ...described })
    visit(error, depth + 1)
  }
  /** The innermost one says the most; those between are counted. */
  const addEnd = (first: unknown, depth: number): void => {
    const chain = new Set<unknown>()
    for (
      let cause = first;
      cause !== undefined && cause !== null && chain.size < MOST_COUNTED;
      cause = member(cause, 'cause')
    ) {
      if (seen.has(cause) || chain.has(cause)) break
      chain.add(cause)
    }
    const innermost = [...chain].at(-1)
    if (innermost === undefined || found.length >= MAX_CAUSES - 1) return
    if (chain.size > 1) found.push(leftOut(chain.size - 1, { depth, as: 'cause' }))
    const { hasOwnFrames, ...described } = describeOne(innermost, describing, shownCause)
    found.push({ depth: chain.size > 1 ? depth + 1 : depth, as: 'cause', ...described })
  }
  visit(thrown, 1)
  return found
}

/** The first of a list, which may throw when it is looked at. */
function listed(errors: unknown): unknown[] {
  try {
    return Array.isArray(errors) ? errors.slice(0, MAX_CAUSES) : []
  } catch {
    return []
  }
}

/** An error of Servo that explains another has its message already. */
const isRepeated = (error: unknown, cause: unknown): boolean =>
  isServoError(error) && messageText(cause).includes(error.message)

interface OneError {
  readonly type?: string
  readonly code?: string
  readonly message: string
  readonly stack?: string
  readonly hasOwnFrames: boolean
}

function describeOne(
  thrown: unknown,
  { root, redact = (text) => text }: DescribingErrors,
  shown: (value: unknown, redact: (text: string) => string) => string = notAnError,
): OneError {
  if (!isErrorLike(thrown)) return { message: cutMiddle(shown(thrown, redact), MAX_MESSAGE), hasOwnFrames: false }
  const type = redact(typeOf(thrown))
  const given = member(thrown, 'code')
  const code = typeof given === 'string' || typeof given === 'number' ? redact(String(given)) : undefined
  const message = redact(messageWithHint(thrown))
  const nameless = `${type}${code === undefined ? '' : ` (${code})`} without a message`
  const foreign = ofPrograms.get(thrown)
  const stack = member(thrown, 'stack')
  return {
    type,
    ...(code !== undefined && { code }),
    message: cutMiddle(message.trim() === '' ? nameless : message, MAX_MESSAGE),
    ...(foreign !== undefined
      ? { stack: redact(foreign), hasOwnFrames: false }
      : typeof stack === 'string'
        ? usefulStack(redact(stack), redact(messageText(thrown)), root)
        : { hasOwnFrames: false }),
  }
}

/** What programs in other languages printed of their stacks. */
const ofPrograms = new WeakMap<object, string>()

/** An error of another program: what that printed shows where it failed, and the frames of this process do not. */
export function errorOfProgram(message: string, printed: string): Error {
  const error = new Error(message)
  if (printed !== '') ofPrograms.set(error, printed)
  return error
}

/** Errors of other realms, and objects that are made like errors, are errors to their author too. */
const isErrorLike = (thrown: unknown): thrown is object =>
  typeof thrown === 'object' && thrown !== null && (typeof member(thrown, 'message') === 'string' || isError(thrown))

/** Also true for an error whose message throws when it is looked at: its stack is worth as much. */
function isError(thrown: object): boolean {
  try {
    return thrown instanceof Error
  } catch {
    return false
  }
}

/** A member of something that may throw when it is looked at. */
function member(value: unknown, name: string): unknown {
  try {
    return (typeof value === 'object' && value !== null) || typeof value === 'function' ? Reflect.get(value, name) : undefined
  } catch {
    return undefined
  }
}

function typeOf(error: object): string {
  const name = member(error, 'name')
  if (typeof name === 'string' && name !== '' && name !== 'Error') return name
  // Many classes of errors do not set their name.
  const its: unknown = member(error, 'constructor')
  const own = typeof its === 'function' ? member(its, 'name') : undefined
  return typeof own === 'string' && own !== '' && own !== 'Object' ? own : 'Error'
}

const SHOWN_VALUE = 500

function notAnError(thrown: unknown, redact: (text: string) => string = (text) => text): string {
  const what = thrown === undefined ? 'undefined' : shownValue(thrown, redact)
  const hint = typeof thrown === 'string' ? 'throw new Error(text)' : 'throw new Error("what went wrong")'
  return `${what} was thrown instead of an Error. Write ${hint}, so that the report has a stack.`
}

/** A cause may be anything: many pass the answer of a server, or the facts of what went wrong. */
const shownCause = (cause: unknown, redact: (text: string) => string): string =>
  typeof cause === 'string' ? cutMiddle(redact(cause), SHOWN_VALUE) : shownValue(cause, redact)

function shownValue(value: unknown, redact: (text: string) => string): string {
  try {
    return cutMiddle(redact(shownFields(value)), SHOWN_VALUE)
  } catch {
    return `a value of type ${typeof value}`
  }
}

function messageText(thrown: unknown): string {
  if (!isErrorLike(thrown)) return notAnError(thrown)
  const message = member(thrown, 'message')
  return typeof message === 'string' ? message : ''
}

/** The message, and what an error of Servo says to do about it: on a line of its own below a message of several. */
function messageWithHint(error: unknown): string {
  const message = messageText(error)
  if (!isServoError(error) || error.hint === undefined) return message
  return message.includes('\n') ? `${message}\n${error.hint}` : `${message}. ${error.hint}`
}

/**
 * The frames that help: those in files of the author, then those in packages. Those of Node and of Servo are left out.
 */
function usefulStack(stack: string, message: string, root: string): { stack?: string; hasOwnFrames: boolean } {
  const from = message === '' ? -1 : stack.indexOf(message)
  const frames = placesIn(from === -1 ? stack : stack.slice(from + message.length))
  const useful = frames.filter(({ file }) => !file.startsWith('node:') && !file.startsWith(OURS))
  const isPackaged = ({ file }: Frame): boolean => file.includes(`${path.sep}node_modules${path.sep}`)
  const own = useful.filter((frame) => !isPackaged(frame)).slice(0, MAX_OWN_FRAMES)
  const chosen = [...own, ...useful.filter(isPackaged).slice(0, MAX_OTHER_FRAMES)]
  const text = chosen.map((frame) => `    at ${frameText(frame, root)}`).join('\n')
  return { ...(text !== '' && { stack: text }), hasOwnFrames: own.length > 0 }
}

function frameText({ name, file, line, column }: Frame, root: string): string {
  const place = `${relative(root, file)}:${line}:${column}`
  return name === '' ? place : `${name} (${place})`
}

const relative = (root: string, file: string): string =>
  path.isAbsolute(file) ? path.relative(root, file).split(path.sep).join('/') : file
