import { type Cell, cutText, widthOf } from '../columns.ts'
import { isLiveTerminal, showBelow } from '../output.ts'

/** Often enough that seconds pass smoothly. */
const DRAW_EVERY_MS = 100

/** A few lines at the bottom of a terminal that are drawn in place, again and again. What is printed meanwhile goes above them. */
export class LiveBlock {
  readonly #rows: () => readonly (readonly Cell[])[]
  #shown: readonly string[] = []
  #timer: NodeJS.Timeout | undefined

  private constructor(rows: () => readonly (readonly Cell[])[]) {
    this.#rows = rows
  }

  /** Undefined where lines cannot be drawn in place: in a pipe, in CI, or on a terminal that wants plain text. */
  static on(rows: () => readonly (readonly Cell[])[]): LiveBlock | undefined {
    return isLiveTerminal() ? new LiveBlock(rows) : undefined
  }

  start(): void {
    if (this.#timer !== undefined) return
    this.#timer = setInterval(() => this.#update(), DRAW_EVERY_MS)
    showBelow(this)
    this.draw()
  }

  /** Leaves nothing of it on the screen. */
  stop(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
    this.hide()
    showBelow(undefined)
  }

  hide(): void {
    // Up to the first line of the block, and everything from there on is cleared.
    if (this.#shown.length > 0) process.stdout.write(`\r\u001b[${this.#shown.length}A\u001b[J`)
    this.#shown = []
  }

  draw(): void {
    if (this.#timer === undefined) return
    this.#shown = this.#lines()
    if (this.#shown.length > 0) process.stdout.write(`${this.#shown.join('\n')}\n`)
  }

  #update(): void {
    const lines = this.#lines()
    if (lines.length === this.#shown.length && lines.every((line, i) => line === this.#shown[i])) return
    this.hide()
    this.draw()
  }

  /** A line that wraps would be two, and the next drawing would leave one of them behind. */
  #lines(): string[] {
    const { columns = 80, rows = 24 } = process.stdout
    return this.#rows()
      .slice(0, Math.max(1, rows - 1))
      .map((row) => fitted(row, columns - 1))
  }
}

/** One line of cells, cut where the terminal ends. */
export function fitted(row: readonly Cell[], width: number): string {
  let room = width
  let line = ''
  for (const { text, paint = unpainted } of row) {
    if (text === '') continue
    const gap = line === '' ? '' : '  '
    const shown = cutText(text.replaceAll(/[\t\n]/g, ' '), room - gap.length)
    if (shown === '') break
    line += gap + paint(shown)
    room -= gap.length + widthOf(shown)
  }
  return line
}

const unpainted = (text: string): string => text
