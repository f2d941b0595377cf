import { ServoError } from '../lib/error.ts'

/**
 * The form of a path in an object store, the same for every adapter: parts of letters, digits, `.`, `_`, `=` and `-`, joined by
 * `/`. File systems, S3, URLs and Hive partitions (`date=2025-01-15`) all read this alphabet alike without escaping, and because
 * it is ASCII, comparing strings is comparing bytes. No part starts with a dot, so `.` and `..` are not paths, and names with a dot
 * stay free for the private files of adapters and operating systems.
 */
const PART = '[A-Za-z0-9_=-][A-Za-z0-9._=-]{0,199}'
const partPattern = new RegExp(`^${PART}$`)
const pathPattern = new RegExp(`^${PART}(?:/${PART})*$`)

/** The longest key S3 and GCS accept. */
const MAX_PATH_BYTES = 1024

/** Enough of a bad path to recognise it, too little to flood a log. */
const SHOWN_CHARACTERS = 80

/** True if this can be one part of a path. */
export function isPathPart(name: string): boolean {
  return partPattern.test(name)
}

/** Refuses text that is not the path of an object. Every adapter method calls this first. */
export function checkPath(path: string): void {
  if (!isPath(path)) throw badPath('path', path)
}

/** Refuses a prefix that does not name a folder, and an `after` that could not be a position in a listing. */
export function checkListing(prefix: string, after: string | undefined): void {
  if (!isPrefix(prefix)) throw badPath('prefix', prefix)
  if (after !== undefined && !isPath(after) && !isPrefix(after)) throw badPath('after', after)
}

/** Refuses a range that is not made of two whole numbers from zero. */
export function checkRange(path: string, start: number, length: number): void {
  if (Number.isSafeInteger(start) && start >= 0 && Number.isSafeInteger(length) && length >= 0) return
  throw new ServoError('invalid', 'bad_range', `cannot read ${length} bytes from ${start} of ${path}`, {
    hint: 'Start and length are whole numbers from zero.',
    facts: { path, start, length },
  })
}

function isPath(path: unknown): boolean {
  // The length is checked first, so that the pattern never runs over a hostile megabyte. Text that matches is ASCII: its length is in bytes.
  return typeof path === 'string' && path.length <= MAX_PATH_BYTES && pathPattern.test(path)
}

function isPrefix(prefix: unknown): boolean {
  return prefix === '' || (typeof prefix === 'string' && prefix.endsWith('/') && isPath(prefix.slice(0, -1)))
}

function badPath(role: 'path' | 'prefix' | 'after', value: unknown): ServoError {
  const shown = quote(value)
  const shape =
    role === 'path' ? 'A path is parts joined by "/"' : 'A prefix is empty or ends in "/", and is otherwise parts joined by "/"'
  return new ServoError(
    'invalid',
    'bad_path',
    `${shown} cannot be ${role === 'after' ? 'a position' : `a ${role}`} in an object store`,
    {
      hint: `${shape}; a part is 1 to 200 of A-Z a-z 0-9 . _ = - and does not start with a dot; at most ${MAX_PATH_BYTES} bytes in all.`,
      facts: { [role]: shown },
    },
  )
}

/** Text from outside, shortened, on one line of printable ASCII: it may end up in a terminal or a log. */
function quote(value: unknown): string {
  if (typeof value !== 'string') return `a value of type ${typeof value}`
  const cut = value.length > SHOWN_CHARACTERS
  const text = JSON.stringify(cut ? value.slice(0, SHOWN_CHARACTERS) : value)
  const escaped = text.replace(/[^\x20-\x7e]/g, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)
  return cut ? `${escaped}... (${value.length} characters)` : escaped
}
