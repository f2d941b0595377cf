import { closeSync, createReadStream, openSync, readSync, statSync } from 'node:fs'
import { isServoError, messageOf } from '../../lib/error.ts'
import { isObject } from '../../lib/is-object.ts'
import { counted } from '../../lib/text/counted.ts'
import { DAY_MS } from '../../lib/time.ts'
import { decompressors, textOf } from '../../parquet/codecs.ts'
import type { RowField } from '../../sdk/columns.ts'
import type { DataRow } from '../../sdk/declare/values.ts'
import { invalid, show } from '../../sdk/invalid.ts'
import { parsePythonJson } from '../python-json.ts'
import { csvRecords } from './csv.ts'
import { CalendarDay, expected, fromJson, fromParquet, fromText, MISFIT } from './given-values.ts'

/** A file of rows that a program wrote. */
export interface WrittenRows {
  readonly path: string
  /** The asset whose rows they are. */
  readonly assetKey: string
  /** What errors call it. */
  readonly name: string
  /** What the schema of the rows takes, as far as it is known. Text and JSON have fewer types than code. */
  readonly fields: readonly RowField[] | undefined
}

/** Reads a file row by row, in the format of its ending. The rows have the types that the schema takes, and are not validated yet. */
export async function* readRowsFile(file: WrittenRows): AsyncGenerator<DataRow> {
  if (!statSync(file.path, { throwIfNoEntry: false })?.isFile())
    throw invalid(
      'output_missing',
      `the program exited with 0 but wrote no file ${file.name}`,
      `Write "$SERVO_OUTPUT/${file.name}", even if there are no rows.`,
    )
  if (file.name.endsWith('.csv')) yield* csvRows(file)
  else if (file.name.endsWith('.ndjson')) yield* jsonRows(file)
  else yield* parquetRows(file)
}

async function* csvRows({ path, name, fields }: WrittenRows): AsyncGenerator<DataRow> {
  const types = new Map((fields ?? []).map((field) => [field.name, field]))
  let header: readonly RowField[] | undefined
  let row = 0
  for await (const { line, fields: texts } of csvRecords(textIn(path, name), name)) {
    if (header === undefined) {
      const columns = headerOf(texts, name)
      checkColumns(columns, fields, name)
      header = columns.map((column) => types.get(column) ?? { name: column, type: 'any', empty: 'never' })
      continue
    }
    row++
    if (texts.length !== header.length)
      throw badRow(
        `row ${row} of ${name} (line ${line}) has ${counted(texts.length, 'field')}, and the header has ${header.length}`,
      )
    yield Object.fromEntries(
      header.map((field, i) => {
        const text = texts[i]
        if (text === undefined) return [field.name, missingText(field)]
        const value = fromText(text, field.type)
        if (value === MISFIT) throw misfit(`row ${row} of ${name} (line ${line})`, field, text)
        return [field.name, value]
      }),
    )
  }
  if (header === undefined) checkColumns([], fields, name)
}

/** Of a column that is missing, one word says more than a problem in each row. */
function checkColumns(columns: readonly string[], fields: readonly RowField[] | undefined, name: string): void {
  const absent = fields?.find((field) => field.empty === 'never' && !columns.includes(field.name))
  if (absent === undefined) return
  const separated = columns.some((column) => column.includes(';')) ? 'commas instead of ;' : 'commas'
  throw invalid(
    'output_unreadable',
    `the first line of ${name} has no column ${absent.name}`,
    `Write the names of the columns into the first line, separated by ${separated}, and end lines with LF or CRLF.`,
  )
}

function headerOf(texts: readonly (string | undefined)[], name: string): string[] {
  const seen = new Set<string>()
  return texts.map((text, i) => {
    if (text === undefined || text === '')
      throw invalid(
        'output_unreadable',
        `column ${i + 1} of ${name} has no name`,
        'Write the names of the columns into the first line.',
      )
    if (seen.has(text)) throw invalid('output_unreadable', `${name} has two columns ${text}`, 'Give one of them another name.')
    seen.add(text)
    return text
  })
}

/** A field that is empty, without quotes: most programs write missing values and empty text alike. */
function missingText({ type, empty }: RowField): unknown {
  if (empty === 'null') return null
  return empty === 'never' && (type === 'text' || type === 'any') ? '' : undefined
}

async function* jsonRows({ path, name, fields }: WrittenRows): AsyncGenerator<DataRow> {
  let [row, line] = [0, 0]
  for await (const text of linesOf(textIn(path, name), name)) {
    line++
    if (text.trim() === '') continue
    const where = `row ${++row} of ${name} (line ${line})`
    const given = parsed(text, where)
    if (!isObject(given) || Array.isArray(given)) throw badRow(`${where} is ${show(given).slice(0, 40)}, and not an object`)
    yield typed(given, fields, where, fromJson)
  }
}

function parsed(text: string, where: string): unknown {
  try {
    return parsePythonJson(text)
  } catch (error) {
    throw badRow(`${where} is not JSON: ${messageOf(error)}`)
  }
}

/** Gives the fields of a row their types. */
function typed(
  row: Record<PropertyKey, unknown>,
  fields: readonly RowField[] | undefined,
  where: string,
  convert: (value: unknown, type: RowField['type']) => unknown,
): DataRow {
  const types = new Map((fields ?? []).map((field) => [field.name, field]))
  return Object.fromEntries(
    Object.entries(row).map(([name, given]) => {
      const field = types.get(name) ?? { name, type: 'any', empty: 'never' }
      if (given === null || given === undefined) return [name, field.empty === 'undefined' ? undefined : null]
      const value = convert(given, field.type)
      if (value === MISFIT) throw misfit(where, field, given)
      return [name, value]
    }),
  )
}

const parsers = {
  stringFromBytes: textOf,
  jsonFromBytes: (bytes: Uint8Array): unknown => JSON.parse(textOf(bytes)),
  dateFromDays: (days: number): Date => new CalendarDay(days * DAY_MS),
}

const MAGIC = 'PAR1'

/** What a Parquet library says of a file that is not Parquet at all helps nobody. */
function checkParquet({ path, name, assetKey }: WrittenRows): void {
  const unreadable = (what: string, hint: string): Error => invalid('output_unreadable', `${name} of ${assetKey} ${what}`, hint)
  const { size } = statSync(path)
  if (size === 0)
    throw unreadable(
      'is empty: it has 0 bytes, and a Parquet file without rows still names its columns',
      'Write it with a Parquet library, even if there are no rows, and close it before the program ends.',
    )
  const [begin, end] = [textAt(path, 0), textAt(path, size - MAGIC.length)]
  if (begin !== MAGIC)
    throw unreadable(
      `is not Parquet: it begins with ${JSON.stringify(begin)}`,
      `Write Parquet, or end the name in \`output\` with what the program writes: .csv or .ndjson.`,
    )
  if (end !== MAGIC || size < 3 * MAGIC.length)
    throw unreadable('ends before its footer', 'Close the file before the program ends: the footer is written last.')
}

/** As many characters as the mark of Parquet has. */
function textAt(path: string, from: number): string {
  const file = openSync(path, 'r')
  try {
    const bytes = Buffer.alloc(MAGIC.length)
    return bytes.subarray(0, readSync(file, bytes, 0, bytes.length, Math.max(0, from))).toString('latin1')
  } finally {
    closeSync(file)
  }
}

async function* parquetRows(written: WrittenRows): AsyncGenerator<DataRow> {
  const { path, name, assetKey, fields } = written
  checkParquet(written)
  // Loaded when first used, as in stored-values.ts.
  const { asyncBufferFromFile, parquetMetadataAsync, parquetReadObjects } = await import('hyparquet')
  try {
    const file = await asyncBufferFromFile(path)
    const metadata = await parquetMetadataAsync(file)
    let [rowStart, row] = [0, 0]
    for (const group of metadata.row_groups) {
      const rowEnd = rowStart + Number(group.num_rows)
      const rows = await parquetReadObjects({ file, metadata, rowStart, rowEnd, compressors: decompressors, parsers })
      for (const given of rows) yield typed(given, fields, `row ${++row} of ${name}`, fromParquet)
      rowStart = rowEnd
    }
  } catch (error) {
    if (isServoError(error)) throw error
    throw invalid(
      'output_unreadable',
      `${name} of ${assetKey} is Parquet that cannot be read: ${messageOf(error)}`,
      'Write it with Snappy, gzip, Brotli, Zstandard or no compression, and close it before the program ends.',
    )
  }
}

/** The text of a file in pieces. Text that is not UTF-8 is refused: repaired, it would be other data. */
async function* textIn(path: string, name: string): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  try {
    for await (const chunk of createReadStream(path)) yield decoder.decode(chunk, { stream: true })
    yield decoder.decode()
  } catch (error) {
    if (!(error instanceof TypeError)) throw error
    throw invalid('output_unreadable', `${name} is not UTF-8`, 'Write the file in UTF-8.')
  }
}

/** More than any row has. */
const MAX_LINE = 64 * 2 ** 20

async function* linesOf(chunks: AsyncIterable<string>, name: string): AsyncGenerator<string> {
  let rest = ''
  for await (const chunk of chunks) {
    const lines = chunk.split('\n')
    lines[0] = rest + (lines[0] ?? '')
    rest = lines.pop() ?? ''
    yield* lines
    if (rest.length > MAX_LINE) throw badRow(`a line of ${name} has more than ${MAX_LINE} characters`)
  }
  if (rest !== '') yield rest
}

const badRow = (message: string): Error => invalid('row_does_not_fit', message, 'Change what the program writes.')

const misfit = (where: string, { name, type }: RowField, value: unknown): Error =>
  invalid(
    'row_does_not_fit',
    `${where} has ${show(value).slice(0, 60)} in column ${name}, which must be ${expected[type]}`,
    'Change what the program writes, or the schema if the row is right.',
  )
