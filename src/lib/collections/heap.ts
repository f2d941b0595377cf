/** A priority queue: `comesBefore` is true if its first argument is taken first. */
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
      const parent = items[above]
      if (parent === undefined || !this.#comesBefore(item, parent)) break
      items[at] = parent
      at = above
    }
    items[at] = item
  }

  pop(): T | undefined {
    const items = this.#items
    const first = items[0]
    const last = items.pop()
    if (items.length === 0 || last === undefined) return first
    const { length } = items
    let at = 0
    for (;;) {
      let below = 2 * at + 1
      let child = below < length ? items[below] : undefined
      const sibling = below + 1 < length ? items[below + 1] : undefined
      if (child !== undefined && sibling !== undefined && this.#comesBefore(sibling, child)) {
        child = sibling
        below += 1
      }
      if (child === undefined || !this.#comesBefore(child, last)) break
      items[at] = child
      at = below
    }
    items[at] = last
    return first
  }
}
