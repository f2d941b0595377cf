import { ServoError } from '../lib/error.ts'

/**
 * What a path in an object store may look like, the same for every adapter: segments of letters, digits, `.`, `_`, `=`
 * and `-`, joined by `/`. The alphabet is what a folder, an S3 key, a URL and a Hive partition (`date=2025-01-15`) all
 * read alike without escaping, and because it is ASCII, comparing strings is comparing bytes. No segment starts with a
 * dot, so `.` and `..` are not paths, and dot names stay free for what an adapter or an operating system keeps for itself.
 */
const SEGMENT = '[A-Za-z0-9_=-][A-Za-z0-9._=-]{0,199}'
const segmentPattern = new RegExp(`^${SEGMENT}$`)
const pathPattern = new RegExp(`^${SEGMENT}(?:/${SEGMENT})*$`)

/** The longest key S3 and GCS accept. */
const MAX_PATH_BYTES = 1024

/** Enough of a bad path to recognise it, too little to flood a log. */
const SHOWN_CHARACTERS = 80

/** Whether this can be one segment of a path. */
export function isSegment(name: string): boolean {
  return segmentPattern.test(name)
}

/** Refuses what is not the path of an object. Every adapter method calls this before anything else. */
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
  // The length is asked first so that a hostile megabyte never meets the pattern; what matches is ASCII, so it is bytes.
  return typeof path === 'string' && path.length <= MAX_PATH_BYTES && pathPattern.test(path)
}

function isPrefix(prefix: unknown): boolean {
  return prefix === '' || (typeof prefix === 'string' && prefix.endsWith('/') && isPath(prefix.slice(0, -1)))
}

function badPath(role: 'path' | 'prefix' | 'after', value: unknown): ServoError {
  const shown = quoted(value)
  const shape =
    role === 'path'
      ? 'A path is segments joined by "/"'
      : 'A prefix is empty or ends in "/", and is otherwise segments joined by "/"'
  return new ServoError(
    'invalid',
    'bad_path',
    `${shown} cannot be ${role === 'after' ? 'a position' : `a ${role}`} in an object store`,
    {
      hint: `${shape}; a segment is 1 to 200 of A-Z a-z 0-9 . _ = - and does not start with a dot; at most ${MAX_PATH_BYTES} bytes in all.`,
      facts: { [role]: shown },
    },
  )
}

/** Text from outside, shortened, on one line of printable ASCII: it may end up in a terminal or a log. */
function quoted(value: unknown): string {
  if (typeof value !== 'string') return `a value of type ${typeof value}`
  const cut = value.length > SHOWN_CHARACTERS
  const text = JSON.stringify(cut ? value.slice(0, SHOWN_CHARACTERS) : value)
  const escaped = text.replace(/[^\x20-\x7e]/g, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)
  return cut ? `${escaped}... (${value.length} characters)` : escaped
}
