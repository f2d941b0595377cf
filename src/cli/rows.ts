import { once } from 'node:events'
import type { Plain } from '../adapters/duckdb/plain-values.ts'
import type { QueryResult } from '../adapters/duckdb/read-only-query.ts'
import { widthOf } from './columns.ts'
import { colours, errorColours, printable } from './output.ts'

/** Waits for a slow reader of our output, so that a large answer is never held in memory. */
async function write(text: string): Promise<void> {
  if (!process.stdout.write(text)) await once(process.stdout, 'drain')
}

/** Valid JSON, and one row per line for tools that read lines. */
export async function writeJson({ columns, rows }: QueryResult): Promise<void> {
  let begun = false
  for await (const batch of rows()) {
    const lines = batch.map((row) => jsonText(Object.fromEntries(columns.map(({ name }, i) => [name, row[i]]))))
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

/** The first batch sets the widths; a later row may overhang, so that the reader need not wait for the last. */
export async function writeTable({ columns, rows }: QueryResult): Promise<void> {
  const numeric = columns.map(({ type }) => NUMERIC.test(type))
  const names = columns.map(({ name }) => tableCell(name))
  let widths: number[] | undefined
  let count = 0
  for await (const batch of rows()) {
    const lines = batch.map((row) => ({ row, cells: row.map(tableCell) }))
    const shown = widths ?? (await header(names, lines))
    widths = shown
    await write(lines.map(({ row, cells }) => tableLine(cells, shown, numeric, row)).join(''))
    count += batch.length
  }
  if (widths === undefined) await header(names, [])
  process.stderr.write(errorColours.dim(`${count === 1 ? '1 row' : `${count} rows`}\n`))
}

const NUMERIC = /^(U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|FLOAT|DOUBLE|DECIMAL.*)$/
/** On a screen a wider cell is cut; `--json` has all of it. In a pipe or file nothing is cut. */
const MAX_WIDTH = 60

async function header(names: readonly string[], lines: readonly { cells: readonly string[] }[]): Promise<number[]> {
  const widths = names.map((name, i) =>
    lines.reduce((widest, { cells }) => Math.max(widest, widthOf(cells[i] ?? '')), widthOf(name)),
  )
  await write(
    `${colours.bold(
      names
        .map((name, i) => pad(name, widths[i] ?? 0, false))
        .join('  ')
        .trimEnd(),
    )}\n`,
  )
  await write(`${colours.dim(widths.map((width) => '─'.repeat(width)).join('  '))}\n`)
  return widths
}

function tableLine(
  cells: readonly string[],
  widths: readonly number[],
  numeric: readonly boolean[],
  row: readonly Plain[],
): string {
  const shown = cells.map((cell, i) => {
    const text = pad(cell, widths[i] ?? 0, numeric[i] ?? false)
    return row[i] === null ? colours.dim(text) : text
  })
  return `${shown.join('  ').trimEnd()}\n`
}

function tableCell(value: Plain): string {
  if (value === null) return 'null'
  const text = typeof value === 'object' ? JSON.stringify(value) : String(value)
  return clip(printable(text).replaceAll('\n', '\\n').replaceAll('\t', '\\t'))
}

function clip(text: string): string {
  if (!process.stdout.isTTY || widthOf(text) <= MAX_WIDTH) return text
  let kept = ''
  let width = 0
  for (const character of text) {
    width += widthOf(character)
    if (width >= MAX_WIDTH) break
    kept += character
  }
  return `${kept}…`
}

function pad(text: string, width: number, right: boolean): string {
  const space = ' '.repeat(Math.max(0, width - widthOf(text)))
  return right ? space + text : text + space
}
