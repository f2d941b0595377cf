/** Keeps the values that were used last, up to a total size. Concurrent loads of one key share one promise. */
export class SizedCache<V> {
  readonly #limit: number
  readonly #entries = new Map<string, { value: V; size: number }>()
  readonly #loading = new Map<string, Promise<V>>()
  #size = 0

  constructor(limit: number) {
    this.#limit = limit
  }

  get size(): number {
    return this.#size
  }

  get(key: string): V | undefined {
    const entry = this.#entries.get(key)
    if (entry === undefined) return undefined
    // A Map keeps the order of insertion, so the first entry is the least recently used.
    this.#entries.delete(key)
    this.#entries.set(key, entry)
    return entry.value
  }

  set(key: string, value: V, size: number): void {
    this.#size += size - (this.#entries.get(key)?.size ?? 0)
    this.#entries.delete(key)
    this.#entries.set(key, { value, size })
    for (const [oldest, entry] of this.#entries) {
      if (this.#size <= this.#limit) break
      this.#entries.delete(oldest)
      this.#size -= entry.size
    }
  }

  async load(key: string, load: () => Promise<V>, sizeOf: (value: V) => number): Promise<V> {
    const known = this.get(key)
    if (known !== undefined) return known
    const loading = this.#loading.get(key)
    if (loading !== undefined) return loading
    const promise = load()
    this.#loading.set(key, promise)
    try {
      const value = await promise
      this.set(key, value, sizeOf(value))
      return value
    } finally {
      this.#loading.delete(key)
    }
  }
}
