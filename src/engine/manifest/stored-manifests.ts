import { ServoError } from '../../lib/error.ts'
import type { ObjectStore } from '../../ports/object-store.ts'
import { checksummedJson, readChecksummed } from '../files/checksummed-json.ts'
import { newerFormat } from '../files/newer-format.ts'
import { numberOf, type Paths, type Scope } from '../paths.ts'
import { genesis, MANIFEST_FORMAT, type Manifest } from './manifest.ts'

/** A manifest as it is stored: all formats have the sorted files under the name `runs`. */
type StoredManifest = Omit<Manifest, 'sorted_files'> & { readonly runs: Manifest['sorted_files'] }

export function encodeManifest({ sorted_files: runs, ...manifest }: Manifest): Uint8Array {
  const stored: StoredManifest = { ...manifest, runs }
  return checksummedJson('manifest', stored)
}

export function decodeManifest(bytes: Uint8Array, path: string, scope: Scope): Manifest {
  const { runs: sorted_files, ...manifest } = readChecksummed<StoredManifest>('manifest', bytes, path)
  if (!(manifest.format >= 1 && manifest.format <= MANIFEST_FORMAT)) {
    throw newerFormat(
      path,
      `${path} has format ${String(manifest.format)}, this version of Servo reads formats 1 to ${MANIFEST_FORMAT}`,
    )
  }
  if (
    manifest.tenant_id !== scope.tenant_id ||
    manifest.workspace_id !== scope.workspace_id ||
    manifest.number !== numberOf(path)
  ) {
    throw new ServoError(
      'corrupt',
      'misplaced_manifest',
      `${path} is the manifest ${manifest.number} of ${manifest.tenant_id}/${manifest.workspace_id}`,
      { hint: 'Put it back where it belongs.', facts: { path } },
    )
  }
  return { ...manifest, sorted_files }
}

/** Numbers of the manifests that are there, ascending. */
export async function manifestNumbers(store: ObjectStore, paths: Paths, after = 0): Promise<number[]> {
  const numbers: number[] = []
  for await (const { path } of store.list(paths.manifests, after > 0 ? { after: paths.manifest(after) } : {})) {
    const number = numberOf(path)
    if (Number.isInteger(number) && path === paths.manifest(number)) numbers.push(number)
  }
  return numbers
}

/**
 * The number of the lowest manifest that garbage collection keeps. A compactor that was paused may create one below it, and die
 * before it notices and deletes it again: a manifest below the boundary is not a version of the state.
 */
export async function boundaryOf(store: ObjectStore, paths: Paths): Promise<number> {
  let highest = 0
  for await (const { path } of store.list(paths.boundaries)) if (numberOf(path) > highest) highest = numberOf(path)
  return highest
}

export async function readManifest(
  store: ObjectStore,
  paths: Paths,
  scope: Scope,
  number: number,
): Promise<Manifest | undefined> {
  const path = paths.manifest(number)
  const bytes = await store.get(path)
  return bytes === undefined ? undefined : decodeManifest(bytes, path, scope)
}

/** The copy of the newest manifest, under the number that it says; undefined if there is none. */
export async function readCopy(store: ObjectStore, paths: Paths, scope: Scope): Promise<Manifest | undefined> {
  const bytes = await store.get(paths.manifestCopy)
  if (bytes === undefined) return undefined
  const { number } = readChecksummed<StoredManifest>('manifest', bytes, paths.manifestCopy)
  return decodeManifest(bytes, paths.manifest(number), scope)
}

/** The newest manifest, or the empty beginning. */
export async function newestManifest(store: ObjectStore, paths: Paths, scope: Scope, after = 0): Promise<Manifest> {
  // Garbage collection may delete it between listing and reading, but only if there is a newer one by then.
  for (;;) {
    const newest = (await manifestNumbers(store, paths, after)).at(-1)
    if (newest === undefined) return genesis(scope)
    const manifest = await readManifest(store, paths, scope, newest)
    if (manifest !== undefined) return manifest
  }
}
