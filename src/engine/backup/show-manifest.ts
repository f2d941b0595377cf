import type { ObjectStore } from '../../ports/object-store.ts'
import type { Paths } from '../paths.ts'

/** Writes what else there is beside the newest manifest: its copy, for people and DuckDB, and the boundary below which there is none. */
export async function showManifest(store: ObjectStore, paths: Paths, number: number): Promise<void> {
  const bytes = await store.get(paths.manifest(number))
  if (bytes === undefined) return
  await store.put(paths.manifestCopy, bytes)
  await store.create(paths.boundary(number), new Uint8Array())
}
