import { type FileRef, fileMissing } from '../files/file-ref.ts'
import { Archives } from '../ledger/archives.ts'
import type { Damage, LedgerPlace } from '../ledger/read-segment.ts'
import { scanLedger, segmentIn } from '../ledger/scan-ledger.ts'
import type { Segment } from '../ledger/segment.ts'
import { SeenSegments, type Sequence } from '../ledger/sequence.ts'
import { archiveAt } from '../paths.ts'
import { judgeArchive, otherArchive } from './named-archives.ts'
import { type Misplaced, putBack } from './put-back.ts'

export interface MendedLedger {
  /** Segments and archives that lay elsewhere and are back in their places, and copies that are removed. */
  readonly repaired: readonly string[]
  /** Objects that are no segments and no archives of this ledger, and stay where they are; and archives that are missing. */
  readonly problems: ReadonlyMap<string, Damage>
  /** By name. The path is that of the file, or of the archive. */
  readonly segments: ReadonlyMap<string, { readonly path: string; readonly sequence: Sequence | undefined }>
  /** Segments in archives that are not the ones that the manifest names. They are not part of this ledger. */
  readonly refused: readonly string[]
  readonly seen: SeenSegments
}

/**
 * Reads the whole ledger and puts segments and archives back that were moved, copied or swapped: each says its own name, under its
 * checksum. What is in the way of one is set aside first, so that nothing is lost if this is killed; the next time finds it and goes on.
 * `named` are the archives that a manifest names: another of that name is none of them.
 */
export async function mendLedger(place: LedgerPlace, named: ReadonlyMap<string, FileRef>): Promise<MendedLedger> {
  const { store, paths } = place
  const { repaired, others, missing } = await mendArchives(place, named)
  const problems = new Map<string, Damage>()
  for (const file of missing) problems.set(file.path, { path: file.path, message: fileMissing(file).message })
  for (const path of others) problems.set(path, { path, message: otherArchive(path) })
  const seen = new SeenSegments()
  const segments = new Map<string, { path: string; sequence: Sequence | undefined }>()
  const add = (path: string, segment: Segment): void => {
    segments.set(segment.ulid, { path, sequence: segment.sequence })
    seen.add(segment)
  }
  const misplaced: (Misplaced & { readonly segment: Segment })[] = []
  for await (const scanned of scanLedger(place, others)) {
    const { path } = scanned
    if ('segment' in scanned) {
      add(path, scanned.segment)
      continue
    }
    const segment = segmentIn(place, scanned)
    if (segment === undefined) problems.set(path, { path, message: scanned.error.message })
    else misplaced.push({ path, bytes: scanned.bytes, segment, target: paths.segment(segment.ulid) })
  }
  const sound = new Set([...segments.keys()].map((ulid) => paths.segment(ulid)))
  const { filled, removed } = await putBack(store, misplaced, sound)
  for (const { segment, target } of misplaced) {
    if (!filled.has(target)) continue
    problems.delete(target)
    add(target, segment)
  }
  const archives = new Archives(place)
  const refused: string[] = []
  for (const path of others) refused.push(...(await archives.segments(path)).keys())
  return { repaired: [...repaired, ...filled, ...removed], problems, segments, refused, seen }
}

interface MendedArchives {
  readonly repaired: readonly string[]
  /** Archives that are whole, and not what the manifest names. */
  readonly others: ReadonlySet<string>
  readonly missing: readonly FileRef[]
}

async function mendArchives(place: LedgerPlace, named: ReadonlyMap<string, FileRef>): Promise<MendedArchives> {
  const { store, paths } = place
  const sound = new Set<string>()
  const damaged = new Set<string>()
  const others = new Set<string>()
  const misplaced: Misplaced[] = []
  for (const path of await new Archives(place).all()) {
    const bytes = await store.get(path)
    if (bytes === undefined) continue
    const judged = await judgeArchive(path, bytes, (name) => named.get(`${paths.archives}${name}`))
    if (judged.kind === 'damaged') {
      damaged.add(path)
      continue
    }
    const target = `${paths.archives}${judged.name}`
    if (judged.kind === 'other') {
      // In the place of another one it is named as misplaced, and not read either.
      if (target === path) others.add(path)
    } else if (target === path) sound.add(path)
    // A name from a file is checked before anything is written under it.
    else if (archiveAt(target) !== undefined) misplaced.push({ path, bytes, target })
  }
  const { filled, removed } = await putBack(store, misplaced, sound)
  for (const path of filled) others.delete(path)
  const missing = [...named.values()].filter(({ path }) => ![sound, filled, damaged, others].some((some) => some.has(path)))
  return { repaired: [...filled, ...removed], others, missing }
}
