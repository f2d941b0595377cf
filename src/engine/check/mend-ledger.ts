import type { ServoError } from '../../lib/error.ts'
import type { Damage, LedgerPlace } from '../ledger/read-segment.ts'
import { type Scanned, scanLedger, segmentIn } from '../ledger/scan-ledger.ts'
import { SeenSegments } from '../ledger/sequence.ts'

export interface MendedLedger {
  /** Segments that lay elsewhere and are back in their places, and copies of segments that are removed. */
  readonly repaired: readonly string[]
  /** Objects that are no segments, and stay where they are. */
  readonly problems: ReadonlyMap<string, Damage>
  readonly ulids: ReadonlySet<string>
  readonly seen: SeenSegments
}

type Misplaced = Extract<Scanned, { error: ServoError }> & { readonly ulid: string; readonly target: string }

/**
 * Reads the whole ledger and puts segments back that were moved, copied or swapped: each says its own name, under its checksum. What is
 * in the way of one is set aside first, so that nothing is lost if this is killed; the next time finds it and goes on.
 */
export async function mendLedger(place: LedgerPlace): Promise<MendedLedger> {
  const { store, paths } = place
  const problems = new Map<string, Damage>()
  const seen = new SeenSegments()
  const sound = new Map<string, string>()
  const misplaced: Misplaced[] = []
  for await (const scanned of scanLedger(place)) {
    const { path } = scanned
    if ('segment' in scanned) {
      sound.set(path, scanned.segment.ulid)
      seen.add(scanned.segment)
      continue
    }
    const segment = segmentIn(place, scanned)
    if (segment === undefined) problems.set(path, { path, message: scanned.error.message })
    else misplaced.push({ ...scanned, ulid: segment.ulid, target: paths.segment(segment.ulid) })
  }

  const repaired: string[] = []
  const filled = new Set<string>()
  const lost = misplaced.filter(({ target }) => !sound.has(target))
  const inTheWay = misplaced.filter(({ path }) => lost.some(({ target }) => target === path))
  const aside = (each: Misplaced): string => `${each.path.replace(/\.json$/, '')}.moved.json`
  for (const each of inTheWay) await store.put(aside(each), each.bytes)
  for (const each of lost) {
    if (filled.has(each.target)) continue
    filled.add(each.target)
    await store.put(each.target, each.bytes)
    repaired.push(each.target)
    problems.delete(each.target)
    sound.set(each.target, each.ulid)
    const segment = segmentIn(place, each)
    if (segment !== undefined) seen.add(segment)
  }
  // Each is in its place by now, so these are copies.
  for (const each of misplaced) {
    if (filled.has(each.path)) continue
    await store.delete(each.path)
    if (!filled.has(each.target)) repaired.push(each.path)
  }
  for (const each of inTheWay) await store.delete(aside(each))
  return { repaired, problems, ulids: new Set(sound.values()), seen }
}
