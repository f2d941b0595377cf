import { isServoError } from '../../lib/error.ts'
import { readAnyArchive } from '../ledger/archive-file.ts'
import { Archives } from '../ledger/archives.ts'
import type { Damage, LedgerPlace } from '../ledger/read-segment.ts'
import { scanLedger, segmentIn } from '../ledger/scan-ledger.ts'
import type { Segment } from '../ledger/segment.ts'
import { SeenSegments } from '../ledger/sequence.ts'
import { archiveAt } from '../paths.ts'
import { type Misplaced, putBack } from './put-back.ts'

export interface MendedLedger {
  /** Segments and archives that lay elsewhere and are back in their places, and copies that are removed. */
  readonly repaired: readonly string[]
  /** Objects that are no segments and no archives, and stay where they are. */
  readonly problems: ReadonlyMap<string, Damage>
  readonly ulids: ReadonlySet<string>
  readonly seen: SeenSegments
}

/**
 * Reads the whole ledger and puts segments and archives back that were moved, copied or swapped: each says its own name, under its
 * checksum. What is in the way of one is set aside first, so that nothing is lost if this is killed; the next time finds it and goes on.
 */
export async function mendLedger(place: LedgerPlace): Promise<MendedLedger> {
  const { store, paths } = place
  const repaired = await mendArchives(place)
  const problems = new Map<string, Damage>()
  const seen = new SeenSegments()
  /** By the path that each has or had in a file. */
  const sound = new Map<string, string>()
  const misplaced: (Misplaced & { readonly segment: Segment })[] = []
  for await (const scanned of scanLedger(place)) {
    const { path } = scanned
    if ('segment' in scanned) {
      sound.set(paths.segment(scanned.segment.ulid), scanned.segment.ulid)
      seen.add(scanned.segment)
      continue
    }
    const segment = segmentIn(place, scanned)
    if (segment === undefined) problems.set(path, { path, message: scanned.error.message })
    else misplaced.push({ path, bytes: scanned.bytes, segment, target: paths.segment(segment.ulid) })
  }
  const { filled, removed } = await putBack(store, misplaced, new Set(sound.keys()))
  for (const { segment, target } of misplaced) {
    if (!filled.has(target)) continue
    problems.delete(target)
    sound.set(target, segment.ulid)
    seen.add(segment)
  }
  repaired.push(...filled, ...removed)
  return { repaired, problems, ulids: new Set(sound.values()), seen }
}

async function mendArchives(place: LedgerPlace): Promise<string[]> {
  const { store, paths } = place
  const sound = new Set<string>()
  const misplaced: Misplaced[] = []
  for (const path of await new Archives(place).all()) {
    const bytes = await store.get(path)
    const name = bytes && (await nameIn(path, bytes))
    if (bytes === undefined || name === undefined) continue
    const target = `${paths.archives}${name}`
    if (target === path) sound.add(path)
    // A name from a file is checked before anything is written under it.
    else if (archiveAt(target) !== undefined) misplaced.push({ path, bytes, target })
  }
  const { filled, removed } = await putBack(store, misplaced, sound)
  return [...filled, ...removed]
}

/** The name that a whole archive says; undefined if it is damaged. */
async function nameIn(path: string, bytes: Uint8Array): Promise<string | undefined> {
  try {
    return await readAnyArchive(path, bytes)
  } catch (error) {
    if (!isServoError(error, 'corrupt')) throw error
    return undefined
  }
}
