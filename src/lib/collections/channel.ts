/** Values that one side pushes and the other takes in its own time, in order. */
export class Channel<T> implements AsyncIterable<T> {
  readonly #values: T[] = []
  #wake: (() => void) | undefined
  #closed = false

  push(value: T): void {
    if (this.#closed) return
    this.#values.push(value)
    this.#wake?.()
  }

  /** Nothing comes any more; what is there can still be taken. */
  close(): void {
    this.#closed = true
    this.#wake?.()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T> {
    for (;;) {
      while (this.#values.length > 0) yield* this.#values.splice(0, 1)
      if (this.#closed) return
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
      this.#wake = undefined
    }
  }
}
