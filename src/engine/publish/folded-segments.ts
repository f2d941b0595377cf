import { utcDay } from '../../lib/time.ts'
import { ulidTime } from '../../lib/ulid.ts'
import type { ObjectStore } from '../../ports/object-store.ts'
import { readChecksummed } from '../files/checksummed-json.ts'
import { getChecked } from '../files/file-ref.ts'
import { isSettled } from '../ledger/days.ts'
import type { Manifest, OrderEntry, OrderedPublish } from '../manifest/manifest.ts'
import { readEntriesBackwards } from '../manifest/page-list.ts'

export async function readOrder(store: ObjectStore, entry: OrderEntry): Promise<OrderedPublish[]> {
  return readChecksummed<OrderedPublish[]>('order', await getChecked(store, entry), entry.path)
}

const dayOf = (ulid: string): string => utcDay(ulidTime(ulid))

/**
 * Which segments have been folded. A largest-id watermark would lose a segment whose writer's clock is behind, so this
 * is an exact set: partly in memory, the rest read day by day from the recorded order on demand.
 */
export class FoldedSegments {
  readonly #store: ObjectStore
  #manifest: Manifest
  readonly #known = new Set<string>()
  /** By day, a publish: all segments of that day that were published up to then are in the set. */
  readonly #learnt = new Map<string, number>()
  #forgotten: Manifest['settled_days']

  constructor(store: ObjectStore, manifest: Manifest) {
    this.#store = store
    this.#manifest = manifest
    this.#forgotten = manifest.settled_days
    this.#addDeltas()
  }

  add(ulid: string): void {
    this.#known.add(ulid)
  }

  /** The segment has turned out to have another name. */
  remove(ulid: string): void {
    this.#known.delete(ulid)
  }

  /** True if a segment is known to be folded, without a look at the recorded order. */
  has(ulid: string): boolean {
    return this.#known.has(ulid)
  }

  /** The segments among these that have not been folded, in the order given and each once. */
  async fresh(ulids: readonly string[]): Promise<string[]> {
    // For a segment that is known, its day need not be read.
    const unknown = [...new Set(ulids)].filter((ulid) => !this.#known.has(ulid))
    // A segment that is newer than all published ones is not in the recorded order.
    const through = this.#manifest.watermarks.events_processed_through ?? ''
    await this.#learn(new Set(unknown.filter((ulid) => ulid <= through).map(dayOf)))
    return unknown.filter((ulid) => !this.#known.has(ulid))
  }

  /** True if all of these were folded. */
  async haveAll(ulids: readonly string[]): Promise<boolean> {
    return (await this.fresh(ulids)).length === 0
  }

  /** Moves on to a newer manifest that another process has published. */
  follow(manifest: Manifest): void {
    this.#manifest = manifest
    this.#addDeltas()
  }

  /**
   * Moves on to a manifest of this process, which has added its segments here. Forgets the segments of settled days that are in the
   * recorded order; a question about one of them reads them again.
   */
  forgetSettled(manifest: Manifest, unpublished: Iterable<string>): void {
    if (manifest.settled_days === this.#forgotten) return
    this.#forgotten = manifest.settled_days
    this.#manifest = manifest
    const kept = new Set([...unpublished, ...manifest.l0.flatMap((delta) => delta.segments)])
    for (const ulid of this.#known) if (!kept.has(ulid) && isSettled(manifest, dayOf(ulid))) this.#known.delete(ulid)
    for (const day of this.#learnt.keys()) {
      if (isSettled(manifest, day)) this.#learnt.delete(day)
      else this.#learnt.set(day, manifest.publish)
    }
  }

  #addDeltas(): void {
    for (const delta of this.#manifest.l0) for (const segment of delta.segments) this.#known.add(segment)
  }

  /** Reads the segments of these days from the recorded order, as far as they are not known. */
  async #learn(days: ReadonlySet<string>): Promise<void> {
    let from = Number.POSITIVE_INFINITY
    for (const day of days) from = Math.min(from, this.#unknownFrom(day))
    if (from <= this.#manifest.publish) {
      for await (const entry of readEntriesBackwards(this.#store, this.#manifest.order)) {
        if (entry.publish < from) break
        for (const { segments } of await readOrder(this.#store, entry)) {
          for (const segment of segments) if (days.has(dayOf(segment))) this.#known.add(segment)
        }
      }
    }
    for (const day of days) this.#learnt.set(day, this.#manifest.publish)
  }

  /** The first publish that may have folded something of this day that is not known here. */
  #unknownFrom(day: string): number {
    const learnt = this.#learnt.get(day)
    if (learnt !== undefined) return learnt + 1
    const { first_publishes } = this.#manifest
    if (first_publishes === undefined || isSettled(this.#manifest, day)) return 0
    return first_publishes[day] ?? Number.POSITIVE_INFINITY
  }
}
