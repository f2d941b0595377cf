/** Text, and how it is shown. Colours take no room, so widths are those of the text. */
export interface Cell {
  readonly text: string
  readonly paint?: (text: string) => string
  readonly right?: boolean
}

/** Aligns the cells of lines under each other. The last cell of a line is not padded. */
export function alignRows(rows: readonly (readonly Cell[])[]): string[] {
  const widths = widestOf(rows)
  return rows.map((row) => line(row, widths))
}

/** The width of each column, not less than it was `before`. */
export function widestOf(rows: readonly (readonly Cell[])[], before: readonly number[] = []): number[] {
  const widths = [...before]
  for (const row of rows) {
    for (const [i, { text }] of row.entries()) widths[i] = Math.max(widths[i] ?? 0, widthOf(text))
  }
  return widths
}

/**
 * Narrows the widest columns until a line fits the screen, but none below its `floors`. Where that is not enough, all columns are as
 * narrow as they may be.
 */
export function fitWidths(widths: readonly number[], floors: readonly number[], screen: number): number[] {
  const narrowed = (most: number) => widths.map((width, i) => Math.max(floors[i] ?? 0, Math.min(width, most)))
  for (let most = screen; most > LEAST_WIDTH; most--) {
    const fitting = narrowed(most)
    if (lineWidth(fitting) <= screen) return fitting
  }
  return narrowed(LEAST_WIDTH)
}

/** Enough to tell most words from each other. */
export const LEAST_WIDTH = 8
/** The first column says what a line is about, so more of it stays. */
const LEAST_FIRST = 16
const GAP = '  '

const lineWidth = (widths: readonly number[]): number => widths.reduce((sum, width) => sum + width + GAP.length, -GAP.length)

/** A time as tables show it, at the beginning of a cell or after a word. */
const WITH_TIME = /^(?:\w+ )?\d{4}-\d\d-\d\d \d\d:\d\d(?::\d\d)?/
/** `run_nqii76vp`, `mat_01M7P56TB7CYWWNAJW2FK8YS2X`, `manual:01M7P56HQW11T8B4EP8TM2KC8K`, or a UUID. */
const ID = /^(?:[a-z]+_[a-z2-7]{8,26}|(?:[a-z]+[_:])?[0-9a-z]{26}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/i
const ISO_TIME = /^\d{4}-\d\d-\d\d[T ][\d:.]+(?:Z|[+-][\d:]+)?$/
/** One word, such as a state. */
const WORD = /^[a-z]{1,12}$/i

/** True for text that says something else when it is cut: an id, or a time. */
export const isWhole = (text: string): boolean => ID.test(text) || ISO_TIME.test(text)

/** How much of a cell must stay. A number, a time or an id that is cut is another one, or none. */
function floorOf({ text, right }: Cell, place: number): number {
  const width = widthOf(text)
  if (right || isWhole(text) || WORD.test(text)) return width
  const [time = ''] = WITH_TIME.exec(text) ?? []
  // The mark of what was cut stands behind the time.
  const whole = time === '' ? 0 : Math.min(width, time.length + 1)
  return Math.max(whole, Math.min(width, place === 0 ? LEAST_FIRST : LEAST_WIDTH))
}

/** Text that is not wider than this; where something is missing, it ends in `…`. */
export function cutText(text: string, most: number): string {
  if (widthOf(text) <= most) return text
  let kept = ''
  let width = 1
  for (const character of text) {
    width += widthOf(character)
    if (width > most) break
    kept += character
  }
  return most < 1 ? '' : `${kept}…`
}

/**
 * Aligns the cells of a table. Where a line would be wider than the screen, the widest texts are cut; where that is not enough, the
 * last columns are left out, because lines that wrap cannot be read as a table. Numbers, times and ids are not cut.
 */
export function tableRows(rows: readonly (readonly Cell[])[], screen: number): string[] {
  const widest = widestOf(rows)
  const floors = widest.map(() => 0)
  for (const row of rows) for (const [i, cell] of row.entries()) floors[i] = Math.max(floors[i] ?? 0, floorOf(cell, i))
  let shown = widest.length
  while (shown > 1 && lineWidth(floors.slice(0, shown)) > screen) shown--
  const widths = fitWidths(widest.slice(0, shown), floors, screen)
  return rows.map((row) =>
    line(
      row.slice(0, shown).map((cell, i) => ({ ...cell, text: cutText(cell.text, widths[i] ?? 0) })),
      widths,
    ),
  )
}

/** Breaks text into lines that are not wider than this, between words. */
export function wrapText(text: string, width: number): string[] {
  const lines: string[] = []
  for (const word of text.split(' ')) {
    const last = lines.at(-1)
    if (last === undefined || widthOf(last) + 1 + widthOf(word) > width) lines.push(word)
    else lines[lines.length - 1] = `${last} ${word}`
  }
  return lines
}

/** One line of cells, for widths that are known before all lines are. */
export function line(row: readonly Cell[], widths: readonly number[]): string {
  const filled = row.findLastIndex(({ text }) => text !== '') + 1
  const cells = row.slice(0, filled).map(({ text, paint = same, right }, i) => {
    const space = ' '.repeat(Math.max(0, (widths[i] ?? 0) - widthOf(text)))
    const shown = text === '' ? '' : paint(text)
    if (right) return space + shown
    return i === filled - 1 ? shown : shown + space
  })
  return cells.join(GAP)
}

const same = (text: string): string => text

const ZERO = /\p{Mark}|\u200b|\u200d|\ufe0f/u
const WIDE =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}/u
// biome-ignore lint/suspicious/noControlCharactersInRegex: the range of ASCII.
const ASCII = /^[\u0000-\u007f]*$/

/** The width of text on a terminal: two for most East Asian characters and emoji, none for combining marks. */
export function widthOf(text: string): number {
  if (ASCII.test(text)) return text.length
  let width = 0
  for (const character of text) width += ZERO.test(character) ? 0 : WIDE.test(character) ? 2 : 1
  return width
}
