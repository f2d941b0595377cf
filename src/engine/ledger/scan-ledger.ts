import { isServoError, ServoError } from '../../lib/error.ts'
import { sha256 } from '../../lib/hash.ts'
import { isUlid } from '../../lib/ulid.ts'
import { archiveAt, segmentUlid } from '../paths.ts'
import { originalSha256 } from './archive-file.ts'
import { Archives } from './archives.ts'
import { type LedgerPlace, readSegment } from './read-segment.ts'
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
 * name, this is all that checks and repairs know of how segments are stored.
 */
export async function* scanLedger(place: LedgerPlace): AsyncGenerator<Scanned> {
  const { store, paths, archives = new Archives(place) } = place
  const packed = new Set<string>()
  for (const path of await archives.all()) {
    for await (const scanned of scanArchive({ ...place, archives }, path)) {
      // Two archives have the same segments if a leader that was deposed had made one of them.
      if ('segment' in scanned && packed.has(scanned.segment.ulid)) continue
      if ('segment' in scanned) packed.add(scanned.segment.ulid)
      yield scanned
    }
  }
  for await (const { path } of store.list(paths.ledger)) {
    const bytes = await store.get(path)
    // Packed meanwhile, perhaps after the archives were listed.
    const scanned =
      bytes === undefined
        ? await packedMeanwhile(place, path, packed)
        : await opened(path, bytes, () => openInPlace(place, path, bytes))
    if (scanned === undefined) continue
    if ('segment' in scanned && bytes !== undefined && packed.has(scanned.segment.ulid)) {
      // What is packed is deleted a moment later, or by the next leader.
      if (await isPackedAs(archives, scanned.segment.ulid, bytes)) continue
      yield { path, error: differs(path), bytes }
    } else yield scanned
  }
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

async function packedMeanwhile(place: LedgerPlace, path: string, packed: ReadonlySet<string>): Promise<Scanned | undefined> {
  const ulid = segmentUlid(path)
  if (ulid === undefined || packed.has(ulid)) return undefined
  const segment = await readSegment(place, ulid)
  return segment && { path, segment }
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
