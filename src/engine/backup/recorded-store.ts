import { assert } from '../../lib/assert.ts'
import { countWhile } from '../../lib/collections/binary-search.ts'
import type { ListedObject, ListOptions, ObjectStore } from '../../ports/object-store.ts'
import { type BackedUpFile, placeInBackup } from './file-list.ts'

/** A backup as a restore sees it: the files that its list names, each where it belongs, and nothing else. It can only be read. */
export function recordedStore(store: ObjectStore, files: Iterable<BackedUpFile>): ObjectStore {
  const places = new Map([...files].map((file) => [file.path, placeInBackup(file)]))
  const paths = [...places.keys()].sort()

  /** Paths below a prefix, in order. */
  function* below(prefix: string, after = ''): Generator<string> {
    const first = countWhile(paths.length, (i) => paths[i]! < prefix || paths[i]! <= after)
    for (let i = first; paths[i]?.startsWith(prefix); i++) yield paths[i]!
  }

  async function* list(prefix: string, { after = '' }: ListOptions = {}): AsyncGenerator<ListedObject> {
    for (const path of below(prefix, after)) {
      // One that is gone is not listed, as in any other store.
      if ((await store.size(places.get(path)!)) !== undefined) yield { path }
    }
  }

  async function* folders(prefix: string): AsyncGenerator<string> {
    let last: string | undefined
    for (const path of below(prefix)) {
      const [name = '', ...rest] = path.slice(prefix.length).split('/')
      if (rest.length === 0 || name === last) continue
      last = name
      yield name
    }
  }

  async function at<T>(path: string, read: (place: string) => Promise<T>): Promise<T | undefined> {
    const place = places.get(path)
    return place === undefined ? undefined : await read(place)
  }

  return {
    get: (path) => at(path, (place) => store.get(place)),
    getRange: (path, start, length) => at(path, (place) => store.getRange(place, start, length)),
    size: (path) => at(path, (place) => store.size(place)),
    list,
    folders,
    create: refuse,
    put: refuse,
    delete: refuse,
  }
}

async function refuse(path: string): Promise<never> {
  assert(false, `${path} is to be written to a backup that is only read`)
}
