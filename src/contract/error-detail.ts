import type { ErrorBehind, ErrorDetail, RecordedDetail } from './error-schema.ts'

/** As long as a message that is recorded may be. */
export const MAX_MESSAGE = 16_384
const MAX_NAME = 200
/** A stack of our own workers is shorter; that of another program may be anything. */
const MAX_STACK = 8_192
const MAX_CAUSE_MESSAGE = 4_096
/** Behind the first few nobody looks; a loop over a thousand requests may throw a thousand errors at once. */
const MAX_CAUSES = 16
/** All of it together, so that a run of many failed tasks stays small in memory and in events. */
const MAX_DETAIL = 32_768

/** What is recorded of an error; nothing if nothing is known of it but its message. */
export function boundedDetail({ type, code, stack, causes }: ErrorDetail): ErrorDetail | null {
  const own = { ...names({ type, code }), ...(stack && { stack: cutMiddle(stack, MAX_STACK) }) }
  const behind = boundedCauses((causes ?? []).slice(0, MAX_CAUSES), MAX_DETAIL - sizeOf(own))
  const detail = { ...own, ...(behind.length > 0 && { causes: behind }) }
  return Object.keys(detail).length === 0 ? null : detail
}

/** The last one is kept however long the others are: it says what began all this. */
function boundedCauses(causes: readonly ErrorBehind[], most: number): ErrorBehind[] {
  const bounded = causes.map(({ depth, as, message, ...cause }): ErrorBehind => {
    const text = cause.stack ? { stack: cutMiddle(cause.stack, MAX_STACK) } : {}
    return { depth, as, message: cutMiddle(message, MAX_CAUSE_MESSAGE), ...names(cause), ...text }
  })
  const last = bounded.pop()
  if (last === undefined) return []
  let left = most - sizeOf(last)
  const tooMany = bounded.findIndex((cause) => {
    left -= sizeOf(cause)
    return left < 0
  })
  const [first] = tooMany === -1 ? [] : bounded.slice(tooMany)
  if (first === undefined) return [...bounded, last]
  const count = bounded.slice(tooMany).reduce((sum, { message }) => sum + (leftOutIn(message) ?? 1), 0)
  return [...bounded.slice(0, tooMany), leftOut(count, first), last]
}

/** Stands for causes in the middle of a chain that is too long. */
export const leftOut = (count: number, { depth, as }: Pick<ErrorBehind, 'depth' | 'as'>): ErrorBehind => ({
  depth,
  as,
  message: `… ${count} more`,
})

function leftOutIn(message: string): number | undefined {
  const [, count] = /^… (\d+) more$/.exec(message) ?? []
  return count === undefined ? undefined : Number(count)
}

const names = ({ type, code }: Pick<ErrorDetail, 'type' | 'code'>): Pick<ErrorDetail, 'type' | 'code'> => ({
  ...(type && { type: cutMiddle(type, MAX_NAME) }),
  ...(code && { code: cutMiddle(code, MAX_NAME) }),
})

const sizeOf = (value: object): number => JSON.stringify(value).length

/** The beginning and the end, which say the most; also of text that was cut inside a pair of surrogates. */
export function cutMiddle(text: string, most: number): string {
  if (text.length <= most) return text.toWellFormed()
  const half = Math.floor((most - 3) / 2)
  return `${text.slice(0, half)}\n…\n${text.slice(-half)}`.toWellFormed()
}

/** An error as people read it, a line each: what it is, where it was thrown, and what led to it. */
export function errorLines(message: string, detail: RecordedDetail | null | undefined): string[] {
  const { causes, ...own } = detail ?? {}
  const lines = linesOf(message, own)
  for (const { depth, as, message: its, ...cause } of causes ?? []) {
    const indent = '  '.repeat(as === 'cause' ? depth - 1 : depth)
    const [first = '', ...rest] = linesOf(its, cause)
    const relation = leftOutIn(its) !== undefined ? '' : as === 'cause' ? 'caused by ' : 'one of them: '
    lines.push(`${indent}${relation}${first}`, ...rest.map((line) => `${indent}${line}`))
  }
  return lines
}

function linesOf(message: string, { type, code, stack }: Omit<ErrorDetail, 'causes'>): string[] {
  const begin = type && !isCommon(type) && !message.startsWith(type) ? `${type}: ` : ''
  const end = code && type !== 'ServoError' && !message.includes(code) ? ` (${code})` : ''
  const [first = '', ...rest] = message.split('\n')
  const frames = stack ? stack.split('\n') : []
  return [`${begin}${first}${end}`, ...rest, ...frames]
}

/** The type of an error whose stack is what a program printed last on standard error. The log has all of that. */
export const PROGRAM_ERROR = 'ProgramError'

/** Says nothing that the message does not. */
const isCommon = (type: string): boolean => ['Error', 'ServoError', PROGRAM_ERROR].includes(type)

/**
 * The message with its cause, which often says more than the message: `fetch failed: connect ECONNREFUSED`. Of a long chain only the last
 * one, which began it all.
 */
export function messageWithCause(message: string, detail: RecordedDetail | null | undefined): string {
  const [first = ''] = message.split('\n', 1)
  const causes = (detail?.causes ?? []).filter(({ as }) => as === 'cause')
  let words = first
  for (const { message } of causes.length <= 2 ? causes : causes.slice(-1)) {
    const [why = ''] = message.split('\n', 1)
    if (why !== '' && !words.includes(why)) words = `${words.replace(/[.:;,\s]+$/, '')}: ${why}`
  }
  return words
}
