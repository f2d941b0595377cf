import type { InputRef, StoredValue } from '../../contract/dispatch.ts'
import type { DataColumn } from '../columns.ts'
import type { Query, SqlValue } from './sql.ts'

export type MaybePromise<T> = T | Promise<T>

/** Typed rows, wherever they are stored. */
export interface DataTable<Row> extends AsyncIterable<Row> {
  /** The Parquet files of the table; empty if it is in memory, as in tests. */
  readonly files: readonly string[]
  rows(): Promise<Row[]>
  /** Queries the table as `this`; use other tables and values in `${}`: t.sql`select count(*) as n from this`. */
  sql<Result = Row>(query: TemplateStringsArray, ...values: readonly SqlValue[]): Promise<Result[]>
}

/** The return type of the body of a table. Lists are named first, so that the compiler's complaints speak of rows and not of iterators. */
export type ReturnedRows<Row> = readonly Row[] | Iterable<Row> | AsyncIterable<Row>

export type DataRow = Readonly<Record<string, unknown>>

/** How a value was stored, for the report of the attempt: by its path, or as it is. */
export interface Written {
  /** Later attempts load it by this path, relative to the data store. */
  readonly path?: string
  /** A small value as canonical JSON: it is recorded with the end of the attempt instead of in a file. */
  readonly value?: string
  readonly bytes?: number
  /** Of the file, or of the text. */
  readonly sha256?: string
  readonly rows?: number
  /** Equal data has equal versions. */
  readonly dataVersion?: string
}

/** Bytes and rows are files, whatever their size. */
export interface WrittenFile extends Written {
  readonly path: string
}

/**
 * Where values come from and go to. An attempt writes under a path of its own, at most one value, and no reader sees it before
 * the attempt is reported. Storage that cannot be reached is a ServoError of kind `unavailable`.
 */
export interface ValueStore {
  /**
   * A value as canonical JSON: the executor has made sure that it can be read back as it was. A small one is returned and not
   * written, unless it is wanted as a file.
   */
  writeJson(json: string, as?: 'file'): Promise<Written>
  readJson(value: StoredValue): Promise<unknown>
  /** The bytes that an IO of the project made of a value. */
  writeBytes(bytes: Uint8Array): Promise<WrittenFile>
  readBytes(value: StoredValue): Promise<Uint8Array>
  /**
   * Rows as Parquet. They come validated and may throw half way: then nothing may remain that looks complete. Without
   * columns (the schema does not declare them) they are those of the rows.
   */
  writeRows(rows: AsyncIterable<DataRow>, columns: readonly DataColumn[] | undefined): Promise<WrittenFile>
  /** All the values of the reference as one table. `columns` describe how stored values look in a row: see `DataColumn`. */
  openTable(ref: InputRef, columns: readonly DataColumn[] | undefined): MaybePromise<DataTable<DataRow>>
  /** The answer to a query. It may name these tables, besides the tables in its `${}`; `columns` are the expected columns. */
  runSql(
    query: Query,
    tables: Readonly<Record<string, DataTable<DataRow>>>,
    columns: readonly DataColumn[] | undefined,
  ): AsyncIterable<DataRow>
}

const source = Symbol.for('servo.table')

/** The parts that a table is made of. */
export interface TableContent {
  readonly files: readonly string[]
  readonly columns: readonly DataColumn[] | undefined
  read(): AsyncIterable<DataRow>
  query(query: Query, tables: Readonly<Record<string, DataTable<DataRow>>>): AsyncIterable<DataRow>
}

export function createTable(content: TableContent): DataTable<DataRow> {
  const table: DataTable<DataRow> = {
    files: content.files,
    rows: () => Array.fromAsync(content.read()),
    sql: <Result>(strings: TemplateStringsArray, ...values: readonly SqlValue[]) =>
      Array.fromAsync(content.query({ strings, values }, { this: table })) as Promise<Result[]>,
    [Symbol.asyncIterator]: () => content.read()[Symbol.asyncIterator](),
  }
  Object.defineProperty(table, source, { value: content })
  return table
}

export function isTable(value: unknown): value is DataTable<DataRow> {
  return sourceOfTable(value) !== undefined
}

export function sourceOfTable(value: unknown): TableContent | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  return (value as { [source]?: TableContent })[source]
}
