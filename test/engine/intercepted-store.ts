import type { ListedObject, ListOptions, ObjectStore } from '../../src/ports/object-store.ts'
import type { StoreRequest } from '../../src/testing/counting-store.ts'

/** Called for every request before it is carried out; may wait, count or throw. For a listing, before its first object. */
type Before = (request: StoreRequest) => Promise<void> | void

/** A store that asks before it does anything. */
export function interceptedStore(inner: ObjectStore, before: Before): ObjectStore {
  async function* listing(path: string, options: ListOptions | undefined): AsyncGenerator<ListedObject> {
    await before({ method: 'list', path })
    yield* inner.list(path, options)
  }
  async function* folders(path: string): AsyncGenerator<string> {
    await before({ method: 'folders', path })
    yield* inner.folders(path)
  }
  return {
    async create(path, bytes) {
      await before({ method: 'create', path })
      return await inner.create(path, bytes)
    },
    async put(path, bytes) {
      await before({ method: 'put', path })
      await inner.put(path, bytes)
    },
    async get(path) {
      await before({ method: 'get', path })
      return await inner.get(path)
    },
    async getRange(path, start, length) {
      await before({ method: 'getRange', path })
      return await inner.getRange(path, start, length)
    },
    async size(path) {
      await before({ method: 'size', path })
      return await inner.size(path)
    },
    list: listing,
    folders,
    async delete(path) {
      await before({ method: 'delete', path })
      await inner.delete(path)
    },
  }
}

/** Holds the requests that fit until the test lets them go: what a long pause of a process looks like to the others. */
export class Gate {
  readonly before: Before
  readonly #fits: (request: StoreRequest) => boolean
  #arrived!: (request: StoreRequest) => void
  #open!: () => void
  /** The first request that fits is waiting. */
  readonly arrived = new Promise<StoreRequest>((resolve) => {
    this.#arrived = resolve
  })
  readonly #opened = new Promise<void>((resolve) => {
    this.#open = resolve
  })

  constructor(fits: (request: StoreRequest) => boolean) {
    this.#fits = fits
    this.before = async (request) => {
      if (!this.#fits(request)) return
      this.#arrived(request)
      await this.#opened
    }
  }

  open(): void {
    this.#open()
  }
}
