import { ServoError } from '../../lib/error.ts'
import { toIso } from '../../lib/time.ts'
import type { ObjectStore } from '../../ports/object-store.ts'
import { createOwn } from '../files/create-own.ts'
import { checkLeads, type Leading, lostLead } from '../ledger/leading.ts'
import type { Manifest } from '../manifest/manifest.ts'
import { numbersAbove } from '../manifest/numbers-above.ts'
import { boundaryOf, encodeManifest, newestManifest } from '../manifest/stored-manifests.ts'
import { numberOf, type Paths, type Scope } from '../paths.ts'

/** How often a takeover is tried. It fails when a deposed leader publishes once more, or when another process takes over. */
const MAX_TAKEOVERS = 10

/** Creates a manifest unless its number is taken, or lies below what garbage collection keeps. */
export async function createManifest(
  store: ObjectStore,
  paths: Paths,
  manifest: Manifest,
): Promise<'created' | 'taken' | 'passed'> {
  const path = paths.manifest(manifest.number)
  const bytes = encodeManifest(manifest)
  if (!(await createOwn(store, path, bytes))) return 'taken'
  // A number that garbage collection has passed is free again: a manifest created there is not a version of the state.
  for await (const boundary of store.list(paths.boundaries, { after: paths.boundary(manifest.number) })) {
    // A file that is not ours must not stop every publish.
    if (!(numberOf(boundary.path) > manifest.number)) continue
    await store.delete(path)
    return 'passed'
  }
  // Only people and DuckDB read the copy, so the publish succeeds even if this fails.
  await store.put(paths.manifestCopy, bytes).catch(() => undefined)
  return 'created'
}

/** The manifest with which a compactor announces that it writes from now on. */
export function takeoverOf(manifest: Manifest, name: string, nowMs: number): Manifest {
  const { number, epoch } = manifest
  return { ...manifest, number: number + 1, epoch: epoch + 1, compactor: name, published_at: toIso(nowMs) }
}

/**
 * Takes the next epoch before anything else is done: from then on no manifest of a lower epoch can appear. If the number of the takeover
 * is taken by a lower epoch, a deposed leader has published once more, and the takeover is tried again after it. If it is taken by the
 * same epoch or a higher one, another process has taken over, and leads unless the lease confirms this one.
 */
export async function takeNextEpoch(
  options: { readonly store: ObjectStore; readonly scope: Scope; readonly name: string; readonly lease?: Leading | undefined },
  paths: Paths,
  newest: Manifest,
  nowMs: number,
): Promise<Manifest> {
  const { store, scope, name, lease } = options
  let manifest = newest
  for (let attempt = 0; attempt < MAX_TAKEOVERS; attempt++) {
    await checkLeads(lease)
    const takeover = takeoverOf(manifest, name, nowMs)
    const outcome = await createManifest(store, paths, takeover)
    if (outcome === 'created') return takeover
    manifest = await newestManifest(store, paths, scope)
    // Garbage collection has passed manifests that are gone now, and numbers up to there are of no use.
    if (outcome === 'passed' && manifest.number < (await boundaryOf(store, paths)))
      manifest = { ...manifest, ...(await numbersAbove({ store, scope, paths })) }
    if (manifest.epoch >= takeover.epoch && !(await lease?.confirm())) throw lostLead(lease)
  }
  throw new ServoError('unavailable', 'takeovers_failed', `${MAX_TAKEOVERS} takeovers failed because others published first`, {
    hint: 'Another process keeps publishing here. Check which processes use this folder or bucket.',
  })
}
