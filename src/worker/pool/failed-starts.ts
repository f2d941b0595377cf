/** A moment in which another process may have ended. */
const FIRST_PAUSE_MS = 100
/** Soon enough for an attempt that waits, seldom enough to cost nothing. */
const LONGEST_PAUSE_MS = 5_000

/**
 * Five tries take a second and a half with the pauses between them. A machine that can start no process for so long may not be
 * able to for hours.
 */
const MANY = 5

/**
 * Counts processes that could not be started at all, because the machine has no room for more or the program is gone. That may
 * be over in a moment or last for ever, so each failure doubles the pause before the next try.
 */
export class FailedStarts {
  #inARow = 0
  #pause: NodeJS.Timeout | undefined

  get isFirst(): boolean {
    return this.#inARow === 1
  }

  get isAny(): boolean {
    return this.#inARow > 0
  }

  get areMany(): boolean {
    return this.#inARow >= MANY
  }

  get isPausing(): boolean {
    return this.#pause !== undefined
  }

  failed(tryAgain: () => void): void {
    this.end()
    this.#pause = setTimeout(
      () => {
        this.#pause = undefined
        tryAgain()
      },
      Math.min(FIRST_PAUSE_MS * 2 ** this.#inARow, LONGEST_PAUSE_MS),
    )
    this.#inARow++
  }

  worked(): void {
    this.#inARow = 0
  }

  /** Cancels the next try. */
  end(): void {
    clearTimeout(this.#pause)
    this.#pause = undefined
  }
}
