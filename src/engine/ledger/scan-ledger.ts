import { isServoError, ServoError } from '../../lib/error.ts'
import { sha256 } from '../../lib/hash.ts'
import { isUlid } from '../../lib/ulid.ts'
import { archiveAt, segmentUlid } from '../paths.ts'
import { originalSha256 } from './archive-file.ts'
import { Archives } from './archives.ts'
import type { LedgerPlace } from './read-segment.ts'
import { openSegment, type Segment } from './segment.ts'

/** An object of the ledger: a segment, in a file or in an archive, or why it is none. */
export type Scanned = Whole<Segment> | NoSegment

interface Whole<T> {
  readonly path: string
  readonly segment: T
  /** The SHA-256 of values that were left out when it was packed. */
  readonly forgotten?: readonly string[] | undefined
}

interface NoSegment {
  readonly path: string
  readonly error: ServoError
  /** None of an archive: it may be large. */
  readonly bytes: Uint8Array
}

/**
 * Everything that is in the ledger: archives first, then files, each in the order of paths. With `readSegment`, which reads one by its
 * name, this is all that checks and repairs know of how segments are stored. Archives in `without` are passed over.
 */
export async function* scanLedger(place: LedgerPlace, without: ReadonlySet<string> = new Set()): AsyncGenerator<Scanned> {
  const { store, paths, archives = new Archives(place) } = place
  const packed = new Set<string>()
  const seen = new Set<string>()
  const scanned = new Set(without)
  async function* scanArchives(): AsyncGenerator<Scanned> {
    for (const path of await archives.all()) {
      if (scanned.has(path)) continue
      scanned.add(path)
      for await (const found of scanArchive({ ...place, archives }, path)) {
        if ('segment' in found) {
          const { ulid } = found.segment
          packed.add(ulid)
          // Two archives have the same segments if a leader that was deposed had made one of them.
          if (seen.has(ulid)) continue
          seen.add(ulid)
        }
        yield found
      }
    }
  }
  yield* scanArchives()
  for await (const { path } of store.list(paths.ledger)) {
    const bytes = await store.get(path)
    if (bytes === undefined) continue
    const found = await opened(path, bytes, () => openInPlace(place, path, bytes))
    if ('error' in found) yield found
    else if (!packed.has(found.segment.ulid)) {
      seen.add(found.segment.ulid)
      yield found
    } else if (!(await isPackedAs(archives, found.segment.ulid, bytes))) yield { path, error: differs(path), bytes }
    // The same as in the archive: it is about to be deleted, or will be by the next leader.
  }
  // What was packed meanwhile may be in no file any more.
  yield* scanArchives()
}

async function* scanArchive(place: LedgerPlace & { archives: Archives }, path: string): AsyncGenerator<Scanned> {
  const { archives, paths, scope } = place
  const none = new Uint8Array()
  const segments = await opened(path, none, async () => {
    if (archiveAt(path) === undefined) throw strangeArchive(path)
    return [...(await archives.segments(path)).values()]
  })
  if ('error' in segments) return yield segments
  const unreadable = new Set<number>()
  for (const segment of segments.segment) {
    if (unreadable.has(segment.block)) continue
    const scanned = await opened(path, none, async () =>
      openSegment(await archives.bytesOf({ path, segment }), paths.segment(segment.ulid), scope),
    )
    if ('error' in scanned) unreadable.add(segment.block)
    yield 'error' in scanned ? scanned : { ...scanned, forgotten: segment.original?.forgotten_values }
  }
}

async function opened<T>(path: string, bytes: Uint8Array, open: () => T | Promise<T>): Promise<Whole<T> | NoSegment> {
  try {
    return { path, segment: await open() }
  } catch (error) {
    if (!isServoError(error, 'corrupt')) throw error
    return { path, error, bytes }
  }
}

async function isPackedAs(archives: Archives, ulid: string, bytes: Uint8Array): Promise<boolean> {
  const found = await archives.find(ulid)
  return found !== undefined && originalSha256(found.segment) === sha256(bytes)
}

const differs = (path: string): ServoError =>
  new ServoError('corrupt', 'segment_differs', `${path} is not the segment of this name that was packed`, {
    hint: 'Move it out of the ledger: the archive of its day has the one that was folded.',
    facts: { path },
  })

const strangeArchive = (path: string): ServoError =>
  new ServoError('corrupt', 'misplaced_archive', `${path} is not where an archive belongs`, {
    hint: 'It was moved or copied. `servo rebuild` puts an archive back where it belongs; move anything else out of the ledger.',
    facts: { path },
  })

/** The segment whose name is in these bytes, wherever they lie; undefined if they are no whole segment. */
export function segmentIn(
  { scope }: LedgerPlace,
  { path, error, bytes }: Extract<Scanned, { error: ServoError }>,
): Segment | undefined {
  const name = error.code === 'misplaced_segment' ? error.facts['holds'] : undefined
  if (typeof name !== 'string' || !isUlid(name)) return undefined
  try {
    return openSegment(bytes, `${path.slice(0, path.lastIndexOf('/') + 1)}${name}.json`, scope)
  } catch {
    return undefined
  }
}

function openInPlace({ paths, scope }: LedgerPlace, path: string, bytes: Uint8Array): Segment {
  const ulid = segmentUlid(path)
  if (ulid !== undefined && path === paths.segment(ulid)) return openSegment(bytes, path, scope)
  const name = path.slice(path.lastIndexOf('/') + 1).replace(/\.json$/, '')
  const error = misplacedIn(bytes, path, scope)
  const holds = error === undefined ? name : error.code === 'misplaced_segment' ? String(error.facts['holds']) : undefined
  const what = holds !== undefined && isUlid(holds) ? `; it holds the segment ${holds}` : ''
  throw new ServoError('corrupt', 'misplaced_segment', `${path} is not where a segment belongs${what}`, {
    hint: 'It was moved or copied. `servo rebuild` puts a segment back where it belongs; move anything else out of the ledger.',
    facts: { path, holds },
  })
}

function misplacedIn(bytes: Uint8Array, path: string, scope: LedgerPlace['scope']): ServoError | undefined {
  try {
    openSegment(bytes, path, scope)
    return undefined
  } catch (error) {
    if (!isServoError(error, 'corrupt')) throw error
    return error
  }
}
