import type { ObjectStore } from '../../ports/object-store.ts'

/** A whole object that lies elsewhere than where it says it belongs. */
export interface Misplaced {
  readonly path: string
  readonly bytes: Uint8Array
  readonly target: string
}

/** Puts objects back where none is that is sound, and removes copies of the others. What is in the way of one is set aside first. */
export async function putBack(
  store: ObjectStore,
  misplaced: readonly Misplaced[],
  sound: ReadonlySet<string>,
): Promise<{ readonly filled: ReadonlySet<string>; readonly removed: readonly string[] }> {
  const filled = new Set<string>()
  const removed: string[] = []
  const lost = misplaced.filter(({ target }) => !sound.has(target))
  const inTheWay = misplaced.filter(({ path }) => lost.some(({ target }) => target === path))
  for (const each of inTheWay) await store.put(aside(each.path), each.bytes)
  for (const { target, bytes } of lost) {
    if (filled.has(target)) continue
    filled.add(target)
    await store.put(target, bytes)
  }
  // Each is in its place by now, so these are copies.
  for (const { path, target } of misplaced) {
    if (filled.has(path)) continue
    await store.delete(path)
    if (!filled.has(target)) removed.push(path)
  }
  for (const each of inTheWay) await store.delete(aside(each.path))
  return { filled, removed }
}

/** The ending stays, so that the next time finds it if this is killed. */
function aside(path: string): string {
  const dot = path.indexOf('.', path.lastIndexOf('/'))
  return `${path.slice(0, dot < 0 ? path.length : dot)}.moved${dot < 0 ? '' : path.slice(dot)}`
}
