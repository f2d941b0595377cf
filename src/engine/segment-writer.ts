import type { ObjectStore } from '../ports/object-store.ts'

/** A write that timed out may have succeeded; its retry then finds its own bytes there, and that is success. */
export async function createOnce(
  store: ObjectStore,
  path: string,
  bytes: Uint8Array,
): Promise<'written' | 'taken' | { error: unknown }> {
  try {
    if ((await store.create(path, bytes)) === 'written') return 'written'
    return (await holds(store, path, bytes)) ? 'written' : 'taken'
  } catch (error) {
    return { error }
  }
}

export async function holds(store: ObjectStore, path: string, bytes: Uint8Array): Promise<boolean> {
  const found = await store.get(path)
  return found !== undefined && Buffer.compare(found, bytes) === 0
}

/** How long to wait before the next try of a write. */
export const backoffMs = (attempt: number): number => Math.min(2_000, 25 * 2 ** attempt)
