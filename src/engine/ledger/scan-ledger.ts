import { isServoError, ServoError } from '../../lib/error.ts'
import { isUlid } from '../../lib/ulid.ts'
import { segmentUlid } from '../paths.ts'
import type { LedgerPlace } from './read-segment.ts'
import { openSegment, type Segment } from './segment.ts'

/** An object of the ledger: a segment, or why it is none. */
export type Scanned =
  | { readonly path: string; readonly segment: Segment }
  | { readonly path: string; readonly error: ServoError; readonly bytes: Uint8Array }

/**
 * Everything that is in the ledger, in the order of paths. With `readSegment`, which reads one by its name, this is all that checks and
 * repairs know of how segments are stored.
 */
export async function* scanLedger(place: LedgerPlace): AsyncGenerator<Scanned> {
  const { store, paths } = place
  for await (const { path } of store.list(paths.ledger)) {
    const bytes = await store.get(path)
    if (bytes === undefined) continue
    try {
      yield { path, segment: openInPlace(place, path, bytes) }
    } catch (error) {
      if (!isServoError(error, 'corrupt')) throw error
      yield { path, error, bytes }
    }
  }
}

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
