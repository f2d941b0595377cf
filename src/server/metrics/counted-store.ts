import type { CounterFamily } from '../../lib/metrics.ts'
import type { ObjectStore } from '../../ports/object-store.ts'

/** By what the request does. */
export const storeRequests = ['create', 'put', 'get', 'get_range', 'size', 'list', 'folders', 'delete'] as const
type StoreRequestKind = (typeof storeRequests)[number]

/** A store whose requests are counted when they are sent, and again when they fail. A listing counts once, however long it is. */
export function countedStore(store: ObjectStore, sent: CounterFamily, failed: CounterFamily): ObjectStore {
  const counters = Object.fromEntries(storeRequests.map((kind) => [kind, sent.of(kind)]))
  const count = (kind: StoreRequestKind): void => counters[kind]?.add()
  async function counted<T>(kind: StoreRequestKind, request: () => Promise<T>): Promise<T> {
    count(kind)
    try {
      return await request()
    } catch (error) {
      failed.of(kind).add()
      throw error
    }
  }
  async function* listed<T>(kind: StoreRequestKind, list: () => AsyncIterable<T>): AsyncGenerator<T> {
    count(kind)
    try {
      yield* list()
    } catch (error) {
      failed.of(kind).add()
      throw error
    }
  }
  return {
    create: (path, bytes) => counted('create', () => store.create(path, bytes)),
    put: (path, bytes) => counted('put', () => store.put(path, bytes)),
    get: (path) => counted('get', () => store.get(path)),
    getRange: (path, start, length) => counted('get_range', () => store.getRange(path, start, length)),
    size: (path) => counted('size', () => store.size(path)),
    list: (prefix, options) => listed('list', () => store.list(prefix, options)),
    folders: (prefix) => listed('folders', () => store.folders(prefix)),
    delete: (path) => counted('delete', () => store.delete(path)),
  }
}
