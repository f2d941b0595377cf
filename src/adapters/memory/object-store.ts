import { countWhile } from '../../lib/collections/binary-search.ts'
import { ServoError } from '../../lib/error.ts'
import { checkListing, checkPath, checkRange } from '../../ports/object-path.ts'
import type { ListedObject, ObjectStore } from '../../ports/object-store.ts'

/** An object store that lives as long as the value: for tests, simulations and trying things out. */
export function memoryStore(): ObjectStore {
  const objects = new Map<string, Uint8Array>()
  const folders = new Set<string>()

  // Paths in byte order, brought up to date by a listing. A listing keeps the array it began with: arrays are
  // replaced, never changed, so writing does not disturb a listing.
  let sorted: readonly string[] = []
  let added: string[] = []
  let removed = false

  function sortedPaths(): readonly string[] {
    if (removed) sorted = [...objects.keys()].sort()
    // A sorted list with a short tail is what merge sort is quickest at: about one comparison for each object.
    else if (added.length > 0) sorted = [...sorted, ...added].sort()
    added = []
    removed = false
    return sorted
  }

  function store(path: string, bytes: Uint8Array): void {
    if (!objects.has(path)) {
      reserveName(path, objects, folders)
      added.push(path)
    }
    // A plain Uint8Array also for a Buffer, whose own slice() would share the caller's memory.
    objects.set(path, new Uint8Array(bytes))
  }

  return {
    async create(path, bytes) {
      checkPath(path)
      if (objects.has(path)) return 'exists'
      store(path, bytes)
      return 'written'
    },

    async put(path, bytes) {
      checkPath(path)
      store(path, bytes)
    },

    async get(path) {
      checkPath(path)
      return objects.get(path)?.slice()
    },

    async getRange(path, start, length) {
      checkPath(path)
      checkRange(path, start, length)
      return objects.get(path)?.slice(start, start + length)
    },

    async size(path) {
      checkPath(path)
      return objects.get(path)?.length
    },

    list(prefix, options = {}) {
      checkListing(prefix, options.after)
      return listing(sortedPaths(), prefix, options.after ?? '')
    },

    folders(prefix) {
      checkListing(prefix, undefined)
      return foldersBelow(sortedPaths(), prefix)
    },

    async delete(path) {
      checkPath(path)
      if (objects.delete(path)) removed = true
    },
  }

  async function* listing(paths: readonly string[], prefix: string, after: string): AsyncGenerator<ListedObject> {
    for (let index = firstListed(paths, prefix, after); index < paths.length; index += 1) {
      const path = paths[index]!
      if (!path.startsWith(prefix)) return
      if (objects.has(path)) yield { path }
    }
  }
}

async function* foldersBelow(paths: readonly string[], prefix: string): AsyncGenerator<string> {
  for (let index = firstListed(paths, prefix, ''); index < paths.length && paths[index]!.startsWith(prefix); ) {
    const path = paths[index]!
    const slash = path.indexOf('/', prefix.length)
    if (slash === -1) {
      index += 1
      continue
    }
    yield path.slice(prefix.length, slash)
    // Everything in this folder comes before the character that follows the slash.
    const past = `${path.slice(0, slash)}0`
    index = countWhile(paths.length, (i) => paths[i]! < past)
  }
}

/** Where the first path that is at least `prefix` and greater than `after` stands in the sorted paths. */
function firstListed(paths: readonly string[], prefix: string, after: string): number {
  return countWhile(paths.length, (i) => paths[i]! < prefix || paths[i]! <= after)
}

/**
 * A folder on disk cannot hold both `a` and `a/b`, so memory refuses it too: what passes a test here must work there.
 * As on disk, a folder stays a folder when its last object has gone.
 */
function reserveName(path: string, objects: ReadonlyMap<string, unknown>, folders: Set<string>): void {
  const above: string[] = []
  for (let slash = path.indexOf('/'); slash !== -1; slash = path.indexOf('/', slash + 1)) above.push(path.slice(0, slash))
  const taken = folders.has(path) ? path : above.find((folder) => objects.has(folder))
  if (taken !== undefined) {
    throw new ServoError(
      'invalid',
      'path_conflict',
      `${path} cannot be an object: ${taken} is ${taken === path ? 'a folder' : 'an object'}`,
      {
        hint: 'A path is either an object or a folder of objects. Choose another name.',
        facts: { path, taken },
      },
    )
  }
  for (const folder of above) folders.add(folder)
}
