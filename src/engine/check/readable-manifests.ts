import type { ObjectStore } from '../../ports/object-store.ts'
import type { Damage } from '../ledger/read-segment.ts'
import { archivesOf, type Manifest } from '../manifest/manifest.ts'
import { readEntries } from '../manifest/page-list.ts'
import type { PublishedMark } from '../manifest/published-mark.ts'
import { boundaryOf, manifestNumbers, readCopy, readManifest } from '../manifest/stored-manifests.ts'
import type { Paths, Scope } from '../paths.ts'
import { readOrder } from '../publish/folded-segments.ts'
import { corruption, unlessCorrupt } from './corruption.ts'

export interface ReadableManifests {
  /** The newest manifest that can be read, or its copy. */
  readonly readable?: Manifest
  /** The same if nothing says that there was a newer one, and the whole recorded order behind it can be read. */
  readonly newest?: Manifest
  /** What of manifests and their lists cannot be read. */
  readonly damaged: readonly Damage[]
}

/** Throws if a newer version of Servo wrote any of them. */
export async function readableManifests(
  { store, scope, paths }: { readonly store: ObjectStore; readonly scope: Scope; readonly paths: Paths },
  mark: PublishedMark | undefined,
): Promise<ReadableManifests> {
  const numbers = await manifestNumbers(store, paths)
  const boundary = await boundaryOf(store, paths)
  const copy = await unlessCorrupt(readCopy(store, paths, scope))
  const damaged: Damage[] = []
  let readable: Manifest | undefined
  for (const number of numbers) {
    if (number < boundary) continue
    const error = await corruption(async () => {
      readable = (await readManifest(store, paths, scope, number)) ?? readable
    })
    // Nobody needs an older one.
    if (error !== undefined && number === numbers.at(-1)) damaged.push({ path: paths.manifest(number), message: error.message })
  }
  if (copy !== undefined && copy.number > (readable?.number ?? 0)) readable = copy
  if (readable === undefined) return { damaged }
  const newest = Math.max(numbers.at(-1) ?? 0, boundary, mark?.manifest ?? 0, copy?.number ?? 0)
  if (readable.number !== newest) {
    const path = paths.manifest(newest)
    return { readable, damaged: [...damaged, { path, message: `${path} is missing` }] }
  }
  const lists = readable
  const error = await corruption(() => readLists(store, lists))
  if (error === undefined) return { newest: readable, readable, damaged }
  return { readable, damaged: [...damaged, { path: String(error.facts['path']), message: error.message }] }
}

/** Reading is the check. */
async function readLists(store: ObjectStore, manifest: Manifest): Promise<void> {
  for await (const entry of readEntries(store, manifest.order)) await readOrder(store, entry)
  for (const list of [manifest.history, archivesOf(manifest)]) {
    for await (const _entry of readEntries<{ publish: number }>(store, list)) {
      // Nothing is to be done with it.
    }
  }
}
