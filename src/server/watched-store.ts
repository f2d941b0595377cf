import type { ObjectStore } from '../ports/object-store.ts'

/** A disk may still answer questions, from memory, when nothing can be written any more. */
type Kind = 'read' | 'write'

/** Notices that a store has stopped to answer. It asks nothing itself: whoever asks the store shows it. */
export class WatchedStore {
  readonly store: ObjectStore
  readonly #now: () => number
  /** When each request began that is not answered yet, the oldest first. */
  readonly #waiting: Readonly<Record<Kind, Map<object, number>>> = { read: new Map(), write: new Map() }
  readonly #answeredAt: Record<Kind, number> = { read: 0, write: 0 }

  constructor(store: ObjectStore, now: () => number) {
    this.#now = now
    this.store = {
      create: (path, bytes) => this.#watch('write', () => store.create(path, bytes)),
      put: (path, bytes) => this.#watch('write', () => store.put(path, bytes)),
      delete: (path) => this.#watch('write', () => store.delete(path)),
      get: (path) => this.#watch('read', () => store.get(path)),
      getRange: (path, start, length) => this.#watch('read', () => store.getRange(path, start, length)),
      size: (path) => this.#watch('read', () => store.size(path)),
      list: (prefix, options) => this.#watchEach(() => store.list(prefix, options)),
      folders: (prefix) => this.#watchEach(() => store.folders(prefix)),
    }
  }

  /** For how long it has been asked and has answered nothing of that kind. */
  get silentMs(): number {
    const now = this.#now()
    return Math.max(
      ...(['read', 'write'] as const).map((kind) => {
        const [oldest] = this.#waiting[kind].values()
        return oldest === undefined ? 0 : now - Math.max(oldest, this.#answeredAt[kind])
      }),
    )
  }

  async #watch<T>(kind: Kind, request: () => Promise<T>): Promise<T> {
    const id = {}
    this.#waiting[kind].set(id, this.#now())
    try {
      return await request()
    } finally {
      this.#waiting[kind].delete(id)
      this.#answeredAt[kind] = this.#now()
    }
  }

  /** Every object of a list is an answer; what its reader does with it is not waited for. */
  async *#watchEach<T>(list: () => AsyncIterable<T>): AsyncGenerator<T> {
    const each = list()[Symbol.asyncIterator]()
    try {
      for (;;) {
        const next = await this.#watch('read', () => each.next())
        if (next.done === true) return
        yield next.value
      }
    } finally {
      await each.return?.()
    }
  }
}
