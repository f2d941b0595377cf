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
 * Narrows the widest columns until a line fits the screen. A column of numbers stays as wide as it is, because a number that is
 * cut is another number. So does every column that is narrow already: what does not fit even so is for the terminal to wrap.
 */
export function fitWidths(widths: readonly number[], isNumber: readonly boolean[], screen: number): number[] {
  const narrowed = (most: number) => widths.map((width, i) => (isNumber[i] ? width : Math.min(width, most)))
  for (let most = screen; most > LEAST_WIDTH; most--) {
    const fitting = narrowed(most)
    if (fitting.reduce((sum, width) => sum + width + GAP.length, -GAP.length) <= screen) return fitting
  }
  return narrowed(LEAST_WIDTH)
}

/** Enough to tell one id or key from the next. */
const LEAST_WIDTH = 12
const GAP = '  '

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

/** Aligns the cells of a table, and cuts the widest columns where a line would be wider than the screen. Numbers are not cut. */
export function tableRows(rows: readonly (readonly Cell[])[], screen: number): string[] {
  const widest = widestOf(rows)
  const isNumber = widest.map((_, i) => rows.some((row) => row[i]?.right === true))
  const widths = fitWidths(widest, isNumber, screen)
  return rows.map((row) =>
    line(
      row.map((cell, i) => (isNumber[i] ? cell : { ...cell, text: cutText(cell.text, widths[i] ?? 0) })),
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
