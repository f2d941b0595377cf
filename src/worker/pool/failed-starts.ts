/** A moment in which another process may have ended. */
const FIRST_PAUSE_MS = 100
/** Soon enough for whoever waits, seldom enough to cost nothing. */
const LONGEST_PAUSE_MS = 5_000

/** With the pauses between them a second and a half: who cannot start a process for so long may not be able to for hours. */
const MANY = 5

/**
 * Processes that could not be started at all: the machine has no room for more, or the program is gone. That may be over in a
 * moment and may last for ever, so another is tried after a pause, and after a longer one when that fails too.
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

  /** Nothing is tried again. */
  end(): void {
    clearTimeout(this.#pause)
    this.#pause = undefined
  }
}
