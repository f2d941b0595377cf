import { isServoError } from '../../lib/error.ts'
import type { ObjectStore } from '../../ports/object-store.ts'
import type { Paths, Scope } from '../paths.ts'
import { Archives } from './archives.ts'
import { openSegment, type Segment } from './segment.ts'

/** Where a ledger is, and whose. */
export interface LedgerPlace {
  readonly store: ObjectStore
  readonly paths: Paths
  readonly scope: Scope
  /** For who reads many segments: remembers what it read of archives. */
  readonly archives?: Archives
}

/** A stored object that cannot be read, described for people. */
export interface Damage {
  readonly path: string
  readonly message: string
}

/** A segment of the ledger; undefined if it does not exist. Throws `corrupt` if it is damaged. */
export async function readSegment(place: LedgerPlace, ulid: string): Promise<Segment | undefined> {
  const { store, paths, scope, archives = new Archives(place) } = place
  const path = paths.segment(ulid)
  // A segment is deleted only once it is in an archive: a reader that heard of it before finds it there.
  const bytes = (await store.get(path)) ?? (await archives.read(ulid))
  return bytes === undefined ? undefined : openSegment(bytes, path, scope)
}

/** The same for a reader that goes on: it reports a damaged segment, and returns undefined, so that the others are still read. */
export async function readUndamaged(
  ledger: LedgerPlace,
  ulid: string,
  onDamage: (damage: Damage) => void,
): Promise<Segment | undefined> {
  try {
    return await readSegment(ledger, ulid)
  } catch (error) {
    if (!isServoError(error, 'corrupt')) throw error
    onDamage({ path: ledger.paths.segment(ulid), message: error.message })
    return undefined
  }
}
