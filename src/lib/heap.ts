/** A priority queue: `comesBefore` says which of two is taken first. */
export class Heap<T> {
  readonly #items: T[] = []
  readonly #comesBefore: (a: T, b: T) => boolean

  constructor(comesBefore: (a: T, b: T) => boolean) {
    this.#comesBefore = comesBefore
  }

  get size(): number {
    return this.#items.length
  }

  peek(): T | undefined {
    return this.#items[0]
  }

  push(item: T): void {
    const items = this.#items
    let at = items.length
    items.push(item)
    while (at > 0) {
      const above = (at - 1) >> 1
      if (!this.#comesBefore(item, items[above] as T)) break
      items[at] = items[above] as T
      at = above
    }
    items[at] = item
  }

  pop(): T | undefined {
    const items = this.#items
    const first = items[0]
    const last = items.pop()
    if (items.length === 0 || last === undefined) return first
    let at = 0
    for (;;) {
      let below = 2 * at + 1
      if (below >= items.length) break
      if (below + 1 < items.length && this.#comesBefore(items[below + 1] as T, items[below] as T)) below += 1
      if (!this.#comesBefore(items[below] as T, last)) break
      items[at] = items[below] as T
      at = below
    }
    items[at] = last
    return first
  }
}
