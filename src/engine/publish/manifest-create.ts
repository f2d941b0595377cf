import { ServoError } from '../../lib/error.ts'
import { toIso } from '../../lib/time.ts'
import type { ObjectStore } from '../../ports/object-store.ts'
import { checkLeads, deposed, type Leading } from '../ledger/leading.ts'
import type { Paths, Scope } from '../paths.ts'
import { encodeManifest, type Manifest, newestManifest } from './manifest.ts'

/** Deposed leaders that publish once more, each, before a claim is given up. */
const MAX_CLAIMS = 10

/** Creates an object, or finds that an earlier try of ours has. */
export async function createOwn(store: ObjectStore, path: string, bytes: Uint8Array): Promise<boolean> {
  if ((await store.create(path, bytes)) === 'written') return true
  const found = await store.get(path)
  return found !== undefined && Buffer.compare(found, bytes) === 0
}

/** Creates a manifest unless its number is taken, or lies below what garbage collection keeps. */
export async function createManifest(
  store: ObjectStore,
  paths: Paths,
  manifest: Manifest,
): Promise<'created' | 'taken' | 'passed'> {
  const path = paths.manifest(manifest.number)
  const bytes = encodeManifest(manifest)
  if (!(await createOwn(store, path, bytes))) return 'taken'
  // A number that garbage collection has passed is free again: a manifest created there is no version of anything.
  for await (const _ of store.list(paths.boundaries, { after: paths.boundary(manifest.number) })) {
    await store.delete(path)
    return 'passed'
  }
  // Only people and DuckDB read the copy, so a failure here is no failure of the publish.
  await store.put(paths.manifestCopy, bytes).catch(() => undefined)
  return 'created'
}

/** The manifest by which a compactor makes it known that it writes from now on. */
export function claimOf(manifest: Manifest, name: string, nowMs: number): Manifest {
  const { number, epoch } = manifest
  return { ...manifest, number: number + 1, epoch: epoch + 1, compactor: name, published_at: toIso(nowMs) }
}

/**
 * Claims the next epoch before anything else is done: from then on no manifest of a lower one can appear. A manifest of a lower
 * epoch in the place of the claim is the last of a leader that was deposed; the claim then follows that one. A higher one is
 * a claim of somebody else, who leads unless this process does.
 */
export async function claimNext(
  options: { readonly store: ObjectStore; readonly scope: Scope; readonly name: string; readonly lease?: Leading | undefined },
  paths: Paths,
  newest: Manifest,
  nowMs: number,
): Promise<Manifest> {
  const { store, scope, name, lease } = options
  let manifest = newest
  for (let attempt = 0; attempt < MAX_CLAIMS; attempt++) {
    await checkLeads(lease)
    const claim = claimOf(manifest, name, nowMs)
    if ((await createManifest(store, paths, claim)) === 'created') return claim
    manifest = await newestManifest(store, paths, scope)
    if (manifest.epoch >= claim.epoch && !(await lease?.confirm())) throw deposed()
  }
  throw new ServoError('unavailable', 'claims_overtaken', `${MAX_CLAIMS} claims were overtaken by others`, {
    hint: 'Something keeps publishing here. See which processes use this folder or bucket.',
  })
}
