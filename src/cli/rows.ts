import { once } from 'node:events'
import type { Plain } from '../adapters/duckdb/plain-values.ts'
import type { QueryResult } from '../adapters/duckdb/read-only-query.ts'
import { type Cell, cutText, fitWidths, isWhole, LEAST_WIDTH, line, widestOf } from './columns.ts'
import { checkFields } from './json/chosen-fields.ts'
import { chosenColumns, colours, endWhenUnread, errorColours, printable, screenWidth } from './output.ts'

/** Waits for a slow reader of our output, so that a large answer is never held in memory. */
async function write(text: string): Promise<void> {
  endWhenUnread()
  if (!process.stdout.write(text)) await once(process.stdout, 'drain')
}

/** Valid JSON, and one row per line for tools that read lines. It has all columns, or those that the user chose. */
export async function writeJson({ columns, rows }: QueryResult): Promise<void> {
  const names = columns.map(({ name }) => name)
  const chosen = chosenColumns() ?? names
  checkFields(chosen, names)
  const places = chosen.map((name) => names.indexOf(name))
  let begun = false
  for await (const batch of rows()) {
    const lines = batch.map((row) => jsonText(Object.fromEntries(chosen.map((name, i) => [name, row[places[i] ?? 0]]))))
    await write((begun ? ',\n' : '[\n') + lines.join(',\n'))
    begun = true
  }
  await write(begun ? '\n]\n' : '[]\n')
}

/** JSON.stringify leaves some characters unescaped that move the cursor of a terminal or reverse text. */
const jsonText = (value: unknown): string => printable(JSON.stringify(value))

/** CSV as in RFC 4180. A null is empty, an empty text is `""`, and a list or an object is JSON. */
export async function writeCsv({ columns, rows }: QueryResult): Promise<void> {
  // A file gets the stored text; a screen gets nothing that could move its cursor.
  const shown = process.stdout.isTTY ? printable : (text: string): string => text
  await write(`${columns.map(({ name }) => shown(csvCell(name))).join(',')}\n`)
  for await (const batch of rows())
    await write(batch.map((row) => `${row.map((value) => shown(csvCell(value))).join(',')}\n`).join(''))
}

function csvCell(value: Plain | undefined): string {
  if (value === null || value === undefined) return ''
  const text = typeof value === 'object' ? JSON.stringify(value) : String(value)
  return text === '' || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

/** Shows the rows as they come, and how many there were. On a screen text is cut where a line would be too long; `--json` has all of it. */
export async function writeTable({ columns, rows }: QueryResult): Promise<void> {
  const show = shownTable(columns, screenWidth())
  let count = 0
  for await (const batch of firstTogether(rows())) {
    await write(show(batch))
    count += batch.length
  }
  if (count === 0) await write(show([]))
  process.stderr.write(errorColours.dim(`${count === 1 ? '1 row' : `${count} rows`}\n`))
}

/** As many rows as are looked at before the widths of columns are chosen. DuckDB may give a few rows in several batches. */
const FIRST_ROWS = 2_048

/** The first rows as one batch, and the batches after it as they come. */
export async function* firstTogether(batches: AsyncIterable<Plain[][]>): AsyncGenerator<Plain[][]> {
  let first: Plain[][] | undefined = []
  for await (const batch of batches) {
    if (first === undefined) yield batch
    else {
      first.push(...batch)
      if (first.length < FIRST_ROWS) continue
      yield first
      first = undefined
    }
  }
  if (first !== undefined && first.length > 0) yield first
}

/** Types of which a part says something else than the whole. */
const WHOLE = /^(DATE|TIME.*|UUID)$/
const NUMERIC = /^(U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|FLOAT|DOUBLE|DECIMAL.*)$/

/**
 * Lays out batches of rows under a header, numbers to the right. The header has the widths of the first batch; a later batch with
 * wider cells has wider columns, so that nobody waits for the last row.
 */
export function shownTable(columns: QueryResult['columns'], screen: number): (batch: readonly Plain[][]) => string {
  const isNumber = columns.map(({ type }) => NUMERIC.test(type))
  const header = columns.map(
    ({ name }, i): Cell => ({ text: tableText(name), paint: colours.bold, right: isNumber[i] === true }),
  )
  const isAllWhole = columns.map(({ type }, i) => isNumber[i] === true || WHOLE.test(type))
  let widest: number[] | undefined
  /** The width of the ids and times among the texts of each column. */
  let wholes: number[] = []
  return (batch) => {
    const isFirst = widest === undefined
    const rows = batch.map((row) => row.map((value, i) => tableCell(value, isNumber[i] === true)))
    widest = widestOf(rows, widest ?? widestOf([header]))
    // All columns stay, because the user asked for them: what does not fit even so is for the terminal to wrap.
    wholes = widestOf(
      rows.map((row) => row.map((cell) => (isWhole(cell.text) ? cell : { text: '' }))),
      wholes,
    )
    const floors = widest.map((width, i) => (isAllWhole[i] ? width : Math.max(wholes[i] ?? 0, Math.min(width, LEAST_WIDTH))))
    const widths = fitWidths(widest, floors, screen)
    const fitted = (row: readonly Cell[]): Cell[] =>
      row.map((cell, i) => ({ ...cell, text: cutText(cell.text, widths[i] ?? 0) }))
    const rule = colours.dim(widths.map((width) => '─'.repeat(width)).join('  '))
    const lines = rows.map((row) => line(fitted(row), widths))
    if (isFirst) lines.unshift(line(fitted(header), widths), rule)
    return lines.map((text) => `${text}\n`).join('')
  }
}

const tableCell = (value: Plain, right: boolean): Cell => ({
  text: tableText(value),
  right,
  ...(value === null && { paint: colours.dim }),
})

function tableText(value: Plain): string {
  if (value === null) return 'null'
  const text = typeof value === 'object' ? JSON.stringify(value) : String(value)
  return printable(text).replaceAll('\n', '\\n').replaceAll('\t', '\\t')
}
