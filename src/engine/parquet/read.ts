import { type AsyncBuffer, type FileMetaData, type KeyValue, parquetMetadata, parquetRead } from 'hyparquet'
import { isServoError, messageOf } from '../../lib/error.ts'
import type { ColumnKind } from '../../model/column.ts'
import type { AnyRow } from '../../model/table.ts'
import { decompressors, textOf } from '../../parquet/codecs.ts'
import { unreadable } from '../files/file-ref.ts'
import { type SkimmedGroup, skimFooter } from './footer.ts'
import { type FileShape, FORMAT, planRead, type ReadPlan, rowColumns } from './schema.ts'

/** The part of a footer that reading rows needs: small enough to keep for many files. */
export interface Footer {
  readonly table: FileShape
  readonly file: string
  readonly plan: ReadPlan
  readonly groups: readonly SkimmedGroup[]
  readonly metadata: ReadonlyMap<string, string>
  readonly parquet: Omit<FileMetaData, 'row_groups' | 'num_rows'>
}

/** A part of a file: its bytes, and where in the file they begin. */
export interface Slice {
  readonly start: number
  readonly bytes: Uint8Array
}

export function sliceOf(bytes: Uint8Array, from = 0): Slice {
  return { start: from, bytes: bytes.subarray(from) }
}

/** Reads the footer from the last bytes of a file, or from all of them. */
export function readFooter(table: FileShape, tail: Uint8Array, file: string): Footer {
  return readable(file, () => {
    const { rest, groups } = skimFooter(tail)
    const { row_groups: _, key_value_metadata, num_rows: __, ...parquet } = parquetMetadata(rest, { geoparquet: false })
    const metadata = new Map((key_value_metadata ?? []).map(({ key, value }: KeyValue) => [key, value ?? '']))
    const name = metadata.get('servo.table') ?? table.name
    if (name !== table.name) throw unreadable(file, `it holds rows of ${name}, not of ${table.name}`)
    const format = metadata.get('servo.format') ?? FORMAT
    if (format !== FORMAT)
      throw unreadable(file, `it has format ${format}, which this version of Servo does not know; a newer one wrote it`)
    return { table, file, plan: planRead(table, parquet.schema, file), groups, metadata, parquet }
  })
}

/** The rows of a row group. */
export async function decodeGroup(footer: Footer, group: SkimmedGroup, slice: Slice): Promise<AnyRow[]> {
  const { table, file, plan } = footer
  const found = await decodeColumns(footer, group, slice, plan.present)
  const columns = rowColumns(table).map(([name]) => found.get(name) ?? new Array(group.rows).fill(null))
  return readable(file, () => builderOf(table)(columns, group.rows, parseJson))
}

/** Some columns of a row group that the file has. JSON stays text. */
export async function decodeColumns(
  { table, file, plan, parquet }: Footer,
  group: SkimmedGroup,
  slice: Slice,
  names: readonly string[],
): Promise<Map<string, ArrayLike<unknown>>> {
  return readable(file, async () => {
    const chunks = new Map<string, ArrayLike<unknown>[]>()
    await parquetRead({
      file: asyncBuffer(slice, group.end),
      metadata: { ...parquet, row_groups: [group.parquet], num_rows: BigInt(group.rows) },
      columns: [...names],
      compressors: decompressors,
      parsers,
      onChunk: ({ columnName, columnData }) => {
        const known = chunks.get(columnName)
        if (known === undefined) chunks.set(columnName, [columnData])
        else known.push(columnData)
      },
    })
    const columns = names.map((name): [string, ArrayLike<unknown>] => {
      const parts = chunks.get(name) ?? []
      const values = parts.length === 1 ? parts[0]! : parts.flatMap((part) => Array.from(part))
      if (values.length !== group.rows) throw unreadable(file, `${name} has ${values.length} values for ${group.rows} rows`)
      if (plan.tightened.includes(name)) refuseNulls(values, table, name, file)
      return [name, table.stored[name]!.kind === 'long' ? longs(values, name, file) : values]
    })
    return new Map(columns)
  })
}

type Build = (columns: readonly ArrayLike<unknown>[], count: number, json: (text: unknown) => unknown) => AnyRow[]
const builders = new WeakMap<FileShape, Build>()

/**
 * Makes rows of columns with one object literal per table, written out as source: all rows of a table then have one
 * hidden class and are made four times as fast as by setting properties in a loop. `defineTable` admits snake_case
 * names only, so nothing but names can get into the source.
 */
function builderOf(table: FileShape): Build {
  const known = builders.get(table)
  if (known !== undefined) return known
  const columns = rowColumns(table)
  // A null LIST or MAP comes out of hyparquet as undefined. JSON is parsed here, so that no two rows share an object.
  const value: Partial<Record<ColumnKind, (c: string) => string>> = {
    json: (c) => `json(${c})`,
    strings: (c) => `${c}??null`,
    map: (c) => `${c}??null`,
  }
  const members = columns.map(([name, { kind }], i) => `${name}:${value[kind]?.(`c${i}[i]`) ?? `c${i}[i]`}`)
  const source = `const [${columns.map((_, i) => `c${i}`)}]=columns;const rows=new Array(count);for(let i=0;i<count;i++)rows[i]={${members}};return rows`
  const build = new Function('columns', 'count', 'json', source) as Build
  builders.set(table, build)
  return build
}

export function parseJson(text: unknown): unknown {
  return typeof text === 'string' ? JSON.parse(text) : null
}

function longs(values: ArrayLike<unknown>, name: string, file: string): unknown[] {
  const numbers = new Array(values.length)
  for (let i = 0; i < numbers.length; i++) {
    const value = values[i]
    const number = value === null ? null : Number(value)
    if (number !== null && !Number.isSafeInteger(number))
      throw unreadable(file, `${name} holds ${value}, which is not a safe integer`)
    numbers[i] = number
  }
  return numbers
}

function refuseNulls(values: ArrayLike<unknown>, table: FileShape, name: string, file: string): void {
  for (let i = 0; i < values.length; i++) {
    if (values[i] === null || values[i] === undefined)
      throw unreadable(file, `${table.name}.${name} is null in row ${i}, but every row must have it`)
  }
}

/** JSON stays text until its row is made. */
const parsers = {
  timestampFromMilliseconds: (ms: bigint): number => Number(ms),
  stringFromBytes: textOf,
  jsonFromBytes: textOf,
}

/** hyparquet wants ArrayBuffers, by offset in the whole file. */
function asyncBuffer({ start, bytes }: Slice, byteLength: number): AsyncBuffer {
  return {
    byteLength,
    slice: (from, to = byteLength) => {
      const part = new Uint8Array(to - from)
      part.set(bytes.subarray(from - start, to - start))
      return part.buffer
    },
  }
}

/** Files are written whole, so a file that cannot be read is damaged: the error names it, whatever went wrong. */
export function readable<T>(file: string, read: () => T): T {
  const fail = (error: unknown): never => {
    throw isServoError(error) ? error : unreadable(file, messageOf(error), error)
  }
  try {
    const result = read()
    return result instanceof Promise ? (result.catch(fail) as T) : result
  } catch (error) {
    return fail(error)
  }
}
