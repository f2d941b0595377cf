import type { ObjectStore } from '../../ports/object-store.ts'

/** Creates an object. True as well if it is there with these bytes: an earlier write of ours that timed out may have succeeded. */
export async function createOwn(store: ObjectStore, path: string, bytes: Uint8Array): Promise<boolean> {
  return (await store.create(path, bytes)) === 'written' || (await holds(store, path, bytes))
}

/** True if the object is there with exactly these bytes. */
export async function holds(store: ObjectStore, path: string, bytes: Uint8Array): Promise<boolean> {
  const found = await store.get(path)
  return found !== undefined && Buffer.compare(found, bytes) === 0
}
