import type { Sequence } from '../ledger/sequence.ts'
import type { LastSegments } from '../manifest/manifest.ts'
import { archiveAt } from '../paths.ts'

/** A segment and where it is. */
export interface Placed {
  readonly ulid: string
  /** The file that it is, or the archive that it is in. */
  readonly path: string
  readonly sequence: Sequence | undefined
}

/** What is known of the ledger that was folded. */
export interface KnownLedger {
  /** Writers of which a segment was folded. */
  readonly writers: ReadonlySet<string>
  /** True for archives that a manifest names, or of which a segment was folded. */
  readonly isOwnArchive: (path: string) => boolean
}

export function knownLedger(
  segments: readonly Placed[],
  known: {
    readonly folded: ReadonlySet<string>
    readonly named: { has(path: string): boolean }
    /** The last segments of writers, as manifest and lease name them. */
    readonly lists: readonly (LastSegments | undefined)[]
  },
): KnownLedger {
  const writers = new Set(known.lists.flatMap((list) => Object.keys(list ?? {})))
  const archives = new Set<string>()
  for (const { ulid, path, sequence } of segments) {
    if (!known.folded.has(ulid)) continue
    archives.add(path)
    if (sequence !== undefined) writers.add(sequence.writer)
  }
  return { writers, isOwnArchive: (path) => known.named.has(path) || archives.has(path) }
}

/**
 * Of segments that were never folded, though they lie in days of which everything was: those that belong to another ledger, as far as can
 * be told. All that a process writes goes by the name of its first segment. So what is in an archive that no manifest names, or comes from
 * a writer that must have written more than this, was not written here. A single first segment is different: a writer that was killed may
 * leave one in a day that was settled meanwhile.
 */
export function strangers(unfolded: readonly Placed[], { writers, isOwnArchive }: KnownLedger): Placed[] {
  const isKnown = ({ sequence }: Placed): boolean => sequence !== undefined && writers.has(sequence.writer)
  const ours = new Set(unfolded.filter(isKnown).map(({ path }) => path))
  const unknown = unfolded.filter((each) => !isKnown(each))
  const wroteMore = new Set(unknown.flatMap(({ sequence }) => (sequence && sequence.number > 1 ? sequence.writer : [])))
  return unknown.filter(({ path, sequence }) =>
    archiveAt(path) === undefined
      ? sequence !== undefined && wroteMore.has(sequence.writer)
      : !isOwnArchive(path) && !ours.has(path),
  )
}

export const describeStranger = (path: string): string =>
  `${path} belongs to another ledger: nothing of who wrote it was ever folded here; move it out of this one`
