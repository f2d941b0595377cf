import type { ObjectStore } from '../ports/object-store.ts'

/** A disk may still answer questions, from memory, when nothing can be written any more. */
type Kind = 'read' | 'write'

/** How much a store had answered at some moment, and whether it owed something. */
type Mark = Readonly<Record<Kind, { readonly answers: number; readonly isOwing: boolean }>>

/** What failed is tried again before so much time has passed. */
const TRIED_AGAIN_MS = 5_000

/** Notices that a store has stopped to answer. It asks nothing itself: whoever asks the store shows it. */
export class WatchedStore {
  readonly store: ObjectStore
  readonly #now: () => number
  /** When each request began that is not answered yet, the oldest first. */
  readonly #waiting: Readonly<Record<Kind, Map<object, number>>> = { read: new Map(), write: new Map() }
  readonly #answeredAt: Record<Kind, number> = { read: 0, write: 0 }
  readonly #answers: Record<Kind, number> = { read: 0, write: 0 }
  /** When a request failed last, if none succeeded since. */
  readonly #failedAt: Record<Kind, number | undefined> = { read: undefined, write: undefined }

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

  /** What to compare with later. */
  mark(): Mark {
    const of = (kind: Kind) => ({ answers: this.#answers[kind], isOwing: this.#isOwing(kind) })
    return { read: of('read'), write: of('write') }
  }

  /** True if it owed something then, and has answered nothing of that kind since. */
  isSilentSince(mark: Mark): boolean {
    return (['read', 'write'] as const).some((kind) => mark[kind].isOwing && mark[kind].answers === this.#answers[kind])
  }

  /** What failed is no answer: it is tried again, and owed until that succeeds. */
  #isOwing(kind: Kind): boolean {
    const failedAt = this.#failedAt[kind]
    return this.#waiting[kind].size > 0 || (failedAt !== undefined && this.#now() - failedAt < TRIED_AGAIN_MS)
  }

  async #watch<T>(kind: Kind, request: () => Promise<T>): Promise<T> {
    const id = {}
    this.#waiting[kind].set(id, this.#now())
    try {
      const answer = await request()
      this.#answers[kind] += 1
      this.#failedAt[kind] = undefined
      return answer
    } catch (error) {
      this.#failedAt[kind] = this.#now()
      throw error
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
