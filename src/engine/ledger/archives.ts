import { isServoError } from '../../lib/error.ts'
import { utcDay } from '../../lib/time.ts'
import { ulidTime } from '../../lib/ulid.ts'
import type { ObjectStore } from '../../ports/object-store.ts'
import type { DayRange } from '../manifest/manifest.ts'
import { archiveAt, type Paths } from '../paths.ts'
import { type ArchivedSegment, type ArchiveSource, readBlock, readIndex, segmentBytes } from './archive-file.ts'

/** Indexes and frames that are kept: a reader that goes through a day in the order of names needs one of each. */
const KEPT_INDEXES = 8
const KEPT_BLOCKS = 4

/** A segment, and the archive that it is in. */
export interface Found {
  readonly path: string
  readonly segment: ArchivedSegment
}

/** Reads segments that were packed. Archives never change, so what was read of them is right for ever; new ones are looked for on a miss. */
export class Archives {
  readonly #store: ObjectStore
  readonly #paths: Paths
  /** By day, the archives that were there when it was last listed. */
  readonly #listed = new Map<string, readonly string[]>()
  /** The first and the last segment of each archive that was read: a large day has many archives, and more than are kept. */
  readonly #spans = new Map<string, { readonly first: string; readonly last: string }>()
  #known: Promise<ReadonlyMap<string, readonly string[]>> | undefined
  readonly #indexes = new Recent<ReadonlyMap<string, ArchivedSegment>>(KEPT_INDEXES)
  readonly #blocks = new Recent<Uint8Array>(KEPT_BLOCKS)

  constructor({ store, paths }: { readonly store: ObjectStore; readonly paths: Paths }) {
    this.#store = store
    this.#paths = paths
  }

  /** The bytes of a segment; undefined if it is in no archive. Throws `corrupt` if its archive is damaged. */
  async read(ulid: string): Promise<Uint8Array | undefined> {
    const found = await this.find(ulid)
    return found && (await this.bytesOf(found))
  }

  /**
   * The same for who reads the whole ledger: archives are listed once, and one that came later is not looked for. So a segment that was
   * packed long ago is not asked for in its file, and one that was not is not asked for here.
   */
  async readKnown(ulid: string): Promise<Uint8Array | undefined> {
    this.#known ??= this.#listAll()
    const found = await this.#findIn((await this.#known).get(utcDay(ulidTime(ulid))) ?? [], ulid)
    return found && (await this.bytesOf(found))
  }

  async bytesOf({ path, segment }: Found): Promise<Uint8Array> {
    const { block } = segment
    const text = await this.#blocks.get(`${path}#${block}`, async () => {
      const source = await this.#source(path)
      return await readBlock(source, await readIndex(source), block)
    })
    return segmentBytes(path, text, segment)
  }

  /** Where a segment is packed. If several archives have it, in the first: they are the same. */
  async find(ulid: string): Promise<Found | undefined> {
    const day = utcDay(ulidTime(ulid))
    const known = this.#listed.get(day) ?? []
    return (await this.#findIn(known, ulid)) ?? (await this.#findIn(await this.ofDay(day), ulid))
  }

  async #findIn(archives: readonly string[], ulid: string): Promise<Found | undefined> {
    let failure: unknown
    for (const path of archives) {
      const span = this.#spans.get(path)
      if (span !== undefined && (ulid < span.first || ulid > span.last)) continue
      try {
        const segment = (await this.segments(path)).get(ulid)
        if (segment !== undefined) return { path, segment }
      } catch (error) {
        // Another archive of the day may have it.
        failure = error
      }
    }
    if (failure !== undefined) throw failure
    return undefined
  }

  /** Those of these segments, which are in order, that are in these archives. Archives that are damaged are passed over. */
  async findAll(archives: readonly string[], ulids: readonly string[]): Promise<ReadonlyMap<string, Found>> {
    const [first, last] = [ulids[0] ?? '', ulids.at(-1) ?? '']
    const wanted = new Set(ulids)
    const found = new Map<string, Found>()
    for (const path of archives) {
      const span = this.#spans.get(path)
      if (span !== undefined && (last < span.first || first > span.last)) continue
      for (const segment of await this.#segmentsUnlessDamaged(path))
        if (wanted.has(segment.ulid)) found.set(segment.ulid, { path, segment })
    }
    return found
  }

  /** The segments of an archive, by name. */
  async segments(path: string): Promise<ReadonlyMap<string, ArchivedSegment>> {
    return await this.#indexes.get(path, async () => {
      const { segments } = await readIndex(await this.#source(path))
      const [first, last] = [segments[0]?.ulid ?? '', segments.at(-1)?.ulid ?? '']
      this.#spans.set(path, { first, last })
      return new Map(segments.map((segment) => [segment.ulid, segment]))
    })
  }

  /** The archives of a day, as they are now. */
  async ofDay(day: string): Promise<readonly string[]> {
    const found: string[] = []
    // What comes before the first part in the order of paths.
    for await (const { path } of this.#store.list(this.#paths.archives, { after: `${this.#paths.archives}${day}` })) {
      const at = archiveAt(path)
      if (at === undefined || at.day < day) continue
      if (at.day > day) break
      found.push(path)
    }
    this.#listed.set(day, found)
    return found
  }

  /** Everything in the folder of the archives. */
  async all(): Promise<string[]> {
    return (await Array.fromAsync(this.#store.list(this.#paths.archives))).map(({ path }) => path)
  }

  async #listAll(): Promise<ReadonlyMap<string, readonly string[]>> {
    return byDay(await this.all())
  }

  /** The paths that the segments in the archives of other days than these had, in order. */
  async *pathsOutside(ranges: readonly DayRange[]): AsyncGenerator<string> {
    const [first] = ranges
    const gaps = [[undefined, first?.[0]], ...ranges.map(([, last], i) => [last, ranges[i + 1]?.[0]])] as const
    const listed = await Promise.all(gaps.map(([after, before]) => this.#between(after, before)))
    for (const archives of byDay(listed.flat()).values()) {
      const ulids = new Set<string>()
      // One that is damaged is found by who checks; the others go on.
      for (const path of archives) for (const { ulid } of await this.#segmentsUnlessDamaged(path)) ulids.add(ulid)
      for (const ulid of [...ulids].sort()) yield this.#paths.segment(ulid)
    }
  }

  async #segmentsUnlessDamaged(path: string): Promise<Iterable<ArchivedSegment>> {
    try {
      return (await this.segments(path)).values()
    } catch (error) {
      if (!isServoError(error, 'corrupt')) throw error
      return []
    }
  }

  /** Archives of the days after one and before another. */
  async #between(after: string | undefined, before: string | undefined): Promise<string[]> {
    const found: string[] = []
    // An underscore comes after the hyphen that follows the day.
    const options = after === undefined ? {} : { after: `${this.#paths.archives}${after}_` }
    for await (const { path } of this.#store.list(this.#paths.archives, options)) {
      const at = archiveAt(path)
      if (at === undefined) continue
      if (before !== undefined && at.day >= before) break
      found.push(path)
    }
    return found
  }

  async #source(path: string): Promise<ArchiveSource> {
    const size = (await this.#store.size(path)) ?? 0
    const range = async (start: number, length: number): Promise<Uint8Array> =>
      (await this.#store.getRange(path, start, length)) ?? new Uint8Array()
    return { path, size, range }
  }
}

function byDay(archives: readonly string[]): Map<string, string[]> {
  const days = new Map<string, string[]>()
  for (const path of archives) {
    const { day } = archiveAt(path) ?? {}
    if (day !== undefined) days.set(day, [...(days.get(day) ?? []), path])
  }
  return days
}

/** What was read last, by name. Several readers of the same wait for one reading; one that fails is tried again. */
class Recent<T> {
  readonly #room: number
  readonly #kept = new Map<string, Promise<T>>()

  constructor(room: number) {
    this.#room = room
  }

  async get(name: string, read: () => Promise<T>): Promise<T> {
    const reading = this.#kept.get(name) ?? read()
    this.#kept.delete(name)
    this.#kept.set(name, reading)
    for (const oldest of this.#kept.keys()) {
      if (this.#kept.size <= this.#room) break
      this.#kept.delete(oldest)
    }
    try {
      return await reading
    } catch (error) {
      if (this.#kept.get(name) === reading) this.#kept.delete(name)
      throw error
    }
  }
}
