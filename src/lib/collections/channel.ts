/** A queue of values: one side pushes, the other takes them in order, at its own pace. */
export class Channel<T> implements AsyncIterable<T> {
  readonly #values: T[] = []
  #wake: (() => void) | undefined
  #closed = false

  push(value: T): void {
    if (this.#closed) return
    this.#values.push(value)
    this.#wake?.()
  }

  /** Ends the channel. Values that are in it can still be taken. */
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
