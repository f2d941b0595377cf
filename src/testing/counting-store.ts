import type { ListedObject, ListOptions, ObjectStore } from '../ports/object-store.ts'

export type StoreMethod = 'create' | 'put' | 'get' | 'getRange' | 'size' | 'list' | 'folders' | 'delete'

/** One request to a store; for a listing `path` is its prefix. */
export interface StoreRequest {
  method: StoreMethod
  path: string
}

export interface CountingStore extends ObjectStore {
  /** Every request since the last reset, oldest first. */
  readonly requests: readonly StoreRequest[]
  readonly bytesWritten: number
  readonly bytesRead: number
  /** How many requests there were, by these methods (all when none are named). */
  count(...methods: StoreMethod[]): number
  /** The paths requested under a prefix, oldest first, by these methods (all when none are named). */
  pathsUnder(prefix: string, ...methods: StoreMethod[]): string[]
  /** Begins to count anew. */
  reset(): void
}

/** As buckets do it: a listing is one request for each thousand objects, and one when there are none. */
const OBJECTS_PER_PAGE = 1_000

/** A store that records its requests, for tests that count them. Failed requests count: they were sent. */
export function countingStore(inner: ObjectStore): CountingStore {
  let requests: StoreRequest[] = []
  let bytesWritten = 0
  let bytesRead = 0

  function matching(methods: StoreMethod[]): StoreRequest[] {
    return methods.length === 0 ? requests : requests.filter((request) => methods.includes(request.method))
  }

  function sent(method: StoreMethod, path: string, bytes?: Uint8Array): void {
    requests.push({ method, path })
    bytesWritten += bytes?.length ?? 0
  }

  function countBytes(bytes: Uint8Array | undefined): Uint8Array | undefined {
    bytesRead += bytes?.length ?? 0
    return bytes
  }

  async function* listing(prefix: string, options: ListOptions | undefined): AsyncGenerator<ListedObject> {
    let listed = 0
    sent('list', prefix)
    for await (const object of inner.list(prefix, options)) {
      // A page is requested with its first object, so a reader that stops at the thousandth pays for one.
      if (listed > 0 && listed % OBJECTS_PER_PAGE === 0) sent('list', prefix)
      listed += 1
      yield object
    }
  }

  return {
    get requests() {
      return requests
    },
    get bytesWritten() {
      return bytesWritten
    },
    get bytesRead() {
      return bytesRead
    },
    count: (...methods) => matching(methods).length,
    pathsUnder: (prefix, ...methods) =>
      matching(methods)
        .map((request) => request.path)
        .filter((path) => path.startsWith(prefix)),
    reset() {
      requests = []
      bytesWritten = 0
      bytesRead = 0
    },

    async create(path, bytes) {
      sent('create', path, bytes)
      return await inner.create(path, bytes)
    },
    async put(path, bytes) {
      sent('put', path, bytes)
      await inner.put(path, bytes)
    },
    async get(path) {
      sent('get', path)
      return countBytes(await inner.get(path))
    },
    async getRange(path, start, length) {
      sent('getRange', path)
      return countBytes(await inner.getRange(path, start, length))
    },
    async size(path) {
      sent('size', path)
      return await inner.size(path)
    },
    list: listing,
    folders(prefix) {
      sent('folders', prefix)
      return inner.folders(prefix)
    },
    async delete(path) {
      sent('delete', path)
      await inner.delete(path)
    },
  }
}
