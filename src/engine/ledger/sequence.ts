import type { LastSegment, LastSegments } from '../manifest/manifest.ts'

/** The place of a segment among those of its writer, counted from 1. A writer goes by the name of its first segment. */
export interface Sequence {
  readonly writer: string
  readonly number: number
}

/** A segment that may have such a place. Those of earlier versions have none. */
export interface Sequenced {
  readonly ulid: string
  readonly sequence?: Sequence | undefined
}

/** Segments of one writer that are not in the ledger. */
export interface Gap {
  readonly writer: string
  readonly first: number
  readonly last: number
  /** The names of those whose names are known. */
  readonly names: readonly string[]
  /** The segments around them, if there are any. */
  readonly after: string | undefined
  readonly before: string | undefined
}

/**
 * A manifest names the last segments of so many writers, those that wrote last. One process writes at a time, so a writer that is left
 * out has long ended.
 */
const MAX_WRITERS = 16

const SEQUENCE = /^([0-9A-HJKMNP-TV-Z]{26})-([1-9]\d{0,14})$/

export const formatSequence = ({ writer, number }: Sequence): string => `${writer}-${number}`

export function parseSequence(text: unknown): Sequence | undefined {
  const [, writer, number] = (typeof text === 'string' && SEQUENCE.exec(text)) || []
  return writer === undefined ? undefined : { writer, number: Number(number) }
}

/** The last segments with these, which were published after them. */
export function withPublished(last: LastSegments, segments: Iterable<Sequenced>): LastSegments {
  const next = new Map(Object.entries(last))
  for (const { ulid, sequence } of segments) {
    if (sequence === undefined || (next.get(sequence.writer)?.number ?? 0) >= sequence.number) continue
    next.set(sequence.writer, { number: sequence.number, segment: ulid })
  }
  const newestFirst = [...next].sort(([, a], [, b]) => (a.segment < b.segment ? 1 : -1))
  return Object.fromEntries(newestFirst.slice(0, MAX_WRITERS))
}

/** Segments that were seen in the ledger, to find out which are missing between them. */
export class SeenSegments {
  readonly #byWriter = new Map<string, Map<number, string>>()

  add({ ulid, sequence }: Sequenced): void {
    if (sequence === undefined) return
    const seen = this.#byWriter.get(sequence.writer) ?? new Map<number, string>()
    this.#byWriter.set(sequence.writer, seen.set(sequence.number, ulid))
  }

  /**
   * What is missing between the segments seen, which are all those that came after `since`, and up to the last ones that are named
   * anywhere.
   */
  gaps(since: LastSegments, ...named: readonly LastSegments[]): Gap[] {
    // A writer that a full list does not have may have been left out of it.
    const namesAll = Object.keys(since).length < MAX_WRITERS
    const gaps = [...this.#byWriter].flatMap(([writer, seen]) => {
      const last = since[writer]
      return gapsBetween(writer, seen, last ?? { number: namesAll ? 0 : lowest(seen) - 1 })
    })
    for (const [writer, { number, segment }] of Object.entries(latest(named))) {
      const seen = this.#byWriter.get(writer)
      const newest = Math.max(highest(seen), since[writer]?.number ?? 0)
      if (number > newest) gaps.push(gap(writer, newest + 1, number, { after: seen?.get(newest), names: [segment] }))
    }
    return gaps
  }
}

/** By writer, the latest of the last segments in these lists. */
export function latest(lists: readonly LastSegments[]): LastSegments {
  const found = new Map<string, LastSegment>()
  for (const [writer, last] of lists.flatMap((list) => Object.entries(list)))
    if (last.number > (found.get(writer)?.number ?? 0)) found.set(writer, last)
  return Object.fromEntries(found)
}

/** A writer may have a million segments, which are too many for the arguments of a call. */
const lowest = (seen: ReadonlyMap<number, string>): number =>
  seen.keys().reduce((least, number) => Math.min(least, number), Number.POSITIVE_INFINITY)
const highest = (seen: ReadonlyMap<number, string> | undefined): number =>
  seen?.keys().reduce((most, number) => Math.max(most, number), 0) ?? 0

function gapsBetween(
  writer: string,
  seen: ReadonlyMap<number, string>,
  last: { readonly number: number; readonly segment?: string },
): Gap[] {
  const gaps: Gap[] = []
  let before = last
  for (const [number, segment] of [...seen].sort(([a], [b]) => a - b)) {
    if (number <= before.number) continue
    if (number > before.number + 1) {
      gaps.push(gap(writer, before.number + 1, number - 1, { after: before.segment, before: segment, names: [] }))
    }
    before = { number, segment }
  }
  return gaps
}

function gap(
  writer: string,
  first: number,
  last: number,
  around: { after?: string | undefined; before?: string; names: readonly string[] },
): Gap {
  const names = [...new Set([...(first === 1 ? [writer] : []), ...around.names])]
  return { writer, first, last, names, after: around.after, before: around.before }
}
