import { dayNumber, daysInMonth } from '../../lib/calendar.ts'

/** Texts as a file has them: row `i` is at `starts[i]` up to `starts[i + 1] - 4`. */
export interface RawTexts {
  readonly bytes: Uint8Array
  readonly starts: Uint32Array
}

const ZERO = 48
const DASH = 45
const COLON = 58
const T = 84
const DAY_MINUTES = 1_440

/**
 * The times that keys show, read from their bytes: `2025-01-15`, `2025-01-15T10` or `2025-01-15T10:30`. A million keys are read
 * without making a text of one. Neighbours mostly share their day, and then only the time of day has to be read.
 */
export class ShownTimes {
  readonly #bytes: Uint8Array
  readonly #starts: Uint32Array
  readonly #view: DataView
  /** The bytes of the last day that was read, and its minutes. */
  #year = 0
  #month = 0
  #date = 0
  #day = Number.NaN

  constructor({ bytes, starts }: RawTexts) {
    this.#bytes = bytes
    this.#starts = starts
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  }

  /** Bytes that the key of a row has. */
  lengthOf(row: number): number {
    return (this.#starts[row + 1] ?? 0) - 4 - (this.#starts[row] ?? 0)
  }

  /** Minutes since 1970; NaN for a key that shows no time, or not in one of these forms. */
  minutesOf(row: number): number {
    const start = this.#starts[row] ?? 0
    const length = this.lengthOf(row)
    if (length !== 10 && length !== 13 && length !== 16) return Number.NaN
    const hour = length === 10 ? 0 : this.#bytes[start + 10] === T ? this.#two(start + 11) : Number.NaN
    const minute = length === 16 ? (this.#bytes[start + 13] === COLON ? this.#two(start + 14) : Number.NaN) : 0
    return hour < 24 && minute < 60 ? this.#dayAt(start) + hour * 60 + minute : Number.NaN
  }

  /** True if the times of these rows, in one form, follow each other at one distance. */
  areEvenlySpaced(low: number, high: number): boolean {
    const length = this.lengthOf(low)
    let before = this.minutesOf(low)
    const step = this.minutesOf(low + 1) - before
    for (let row = low + 1; row <= high; row++) {
      if (this.lengthOf(row) !== length) return false
      const time = this.minutesOf(row)
      // NaN is unequal to everything.
      if (!(time - before === step && step > 0)) return false
      before = time
    }
    return true
  }

  #dayAt(start: number): number {
    const view = this.#view
    const [year, month, date] = [view.getUint32(start), view.getUint32(start + 4), view.getUint16(start + 8)]
    if (year !== this.#year || month !== this.#month || date !== this.#date) {
      this.#year = year
      this.#month = month
      this.#date = date
      this.#day = this.#readDay(start)
    }
    return this.#day
  }

  #readDay(start: number): number {
    if (this.#bytes[start + 4] !== DASH || this.#bytes[start + 7] !== DASH) return Number.NaN
    const year = this.#two(start) * 100 + this.#two(start + 2)
    const [month, date] = [this.#two(start + 5), this.#two(start + 8)]
    // JavaScript takes years below 100 for those of the last century.
    if (!(year >= 100 && month >= 1 && month <= 12 && date >= 1 && date <= daysInMonth(year, month))) return Number.NaN
    return dayNumber(year, month, date) * DAY_MINUTES
  }

  /** Two digits; NaN when they are none. */
  #two(at: number): number {
    const tens = (this.#bytes[at] ?? 0) - ZERO
    const ones = (this.#bytes[at + 1] ?? 0) - ZERO
    return tens >= 0 && tens <= 9 && ones >= 0 && ones <= 9 ? tens * 10 + ones : Number.NaN
  }
}
