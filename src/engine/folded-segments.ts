import { ulidFloor } from '../lib/ulid.ts'
import type { ObjectStore } from '../ports/object-store.ts'
import { getChecked } from './checked.ts'
import type { Manifest, OrderEntry, OrderedPublish } from './manifest.ts'
import { readEntriesBackwards } from './page-list.ts'
import { openJson } from './sealed-json.ts'

export async function readOrder(store: ObjectStore, entry: OrderEntry): Promise<OrderedPublish[]> {
  return openJson<OrderedPublish[]>('order', await getChecked(store, entry), entry.path)
}

/**
 * Which segments have been folded. A largest-id watermark would lose a segment whose writer's clock is behind, so this
 * is an exact set: in memory from some moment on, and read back from the recorded order when a question goes further.
 */
export class FoldedSegments {
  readonly #store: ObjectStore
  #manifest: Manifest
  readonly #known = new Set<string>()
  /** Every folded segment from here on is in the set. */
  #floor: string

  constructor(store: ObjectStore, manifest: Manifest) {
    this.#store = store
    this.#manifest = manifest
    this.#floor = manifest.order.levels[0].length === 0 && manifest.order.levels.length === 1 ? '' : '~'
    for (const delta of manifest.l0) for (const segment of delta.segments) this.#known.add(segment)
  }

  add(ulid: string): void {
    this.#known.add(ulid)
  }

  /** It has turned out that the segment has another name. */
  remove(ulid: string): void {
    this.#known.delete(ulid)
  }

  /** Those that have not been folded, in the order given and each once. */
  async fresh(ulids: readonly string[]): Promise<string[]> {
    const oldest = ulids.reduce((least, ulid) => (ulid < least ? ulid : least), '~')
    if (oldest < this.#floor) await this.#reachBack(oldest)
    return [...new Set(ulids)].filter((ulid) => !this.#known.has(ulid))
  }

  /** Forgets what lies before a moment and is in the manifest's recorded order; a question about it reads that again. */
  forgetBefore(timeMs: number, manifest: Manifest, unpublished: Iterable<string>): void {
    const floor = ulidFloor(timeMs)
    if (floor <= this.#floor) return
    this.#manifest = manifest
    const kept = new Set([...unpublished, ...manifest.l0.flatMap((delta) => delta.segments)])
    for (const ulid of this.#known) if (ulid < floor && !kept.has(ulid)) this.#known.delete(ulid)
    this.#floor = floor
  }

  async #reachBack(ulid: string): Promise<void> {
    for await (const entry of readEntriesBackwards(this.#store, this.#manifest.order)) {
      // Nothing consumed up to here was as new as what is asked for.
      if (entry.through < ulid) break
      for (const publish of await readOrder(this.#store, entry))
        for (const segment of publish.segments) this.#known.add(segment)
    }
    this.#floor = ulid
  }
}
