import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { type AsyncBuffer, asyncBufferFromFile } from 'hyparquet'
import type { InputRef } from '../contract/dispatch.ts'
import { ServoError } from '../lib/error.ts'
import type { Column } from '../sdk/columns.ts'
import type { Query } from '../sdk/sql.ts'
import { createTable, isTable, type Row, sourceOfTable, type Table } from '../sdk/values.ts'
import { readRows } from './rows-read.ts'
import { sourceFiles } from './source-files.ts'
import type { ValueStorage } from './values.ts'

type Tables = Readonly<Record<string, Table<Row>>>
type Columns = readonly Column[] | undefined

export interface StoredTables {
  open(ref: InputRef, columns: Columns): Promise<Table<Row>>
  query(query: Query, named: Tables, columns: Columns): AsyncIterable<Row>
}

/** Tables as Parquet files, in a folder or anywhere else. Rows are read from where they are; DuckDB wants files. */
export function storedTables({ store, fileOf, projectDir }: ValueStorage): StoredTables {
  /** The objects of those tables that are no files. */
  const remote = new WeakMap<Table<Row>, readonly string[]>()

  async function open(ref: InputRef, columns: Columns): Promise<Table<Row>> {
    if (ref.uri) {
      const files = await sourceFiles(ref, projectDir)
      return tableOf(files, files, asyncBufferFromFile, columns)
    }
    const objects = ref.values.flatMap((value) => value.path ?? [])
    const table = tableOf(objects, fileOf === undefined ? [] : objects.map(fileOf), objectBuffer, columns)
    if (fileOf === undefined) remote.set(table, objects)
    return table
  }

  function tableOf(
    paths: readonly string[],
    files: readonly string[],
    buffer: (name: string) => Promise<AsyncBuffer>,
    columns: Columns,
  ): Table<Row> {
    return createTable({
      files,
      columns,
      async *read() {
        for (const name of paths) yield* readRows(await buffer(name), columns, name)
      },
      query: (query, tables) => ask(query, tables, undefined),
    })
  }

  async function* ask(query: Query, named: Tables, columns: Columns): AsyncIterable<Row> {
    // Loaded when first used: it brings DuckDB with it.
    const { queryTables } = await import('../sdk/query-tables.ts')
    const folder = await mkdtemp(path.join(tmpdir(), 'servo-query-'))
    try {
      const here = async <T>(value: T): Promise<T> => (isTable(value) ? ((await copied(value, folder)) as T) : value)
      const tables: Record<string, Table<Row>> = {}
      for (const [name, table] of Object.entries(named)) tables[name] = await here(table)
      yield* queryTables({ strings: query.strings, values: await Promise.all(query.values.map(here)) }, tables, columns)
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  }

  /** The same table as files that DuckDB can open. */
  async function copied(table: Table<Row>, folder: string): Promise<Table<Row>> {
    const objects = remote.get(table)
    const source = sourceOfTable(table)
    if (objects === undefined || source === undefined) return table
    const files = objects.map(async (name, i) => {
      const file = path.join(folder, `${i}-${path.basename(path.dirname(name))}.parquet`)
      await writeFile(file, (await store.get(name)) ?? gone(name))
      return file
    })
    return createTable({ ...source, files: await Promise.all(files) })
  }

  async function objectBuffer(name: string): Promise<AsyncBuffer> {
    const byteLength = (await store.size(name)) ?? gone(name)
    const slice = async (start: number, end = byteLength): Promise<ArrayBuffer> => {
      const bytes = (await store.getRange(name, start, end - start)) ?? gone(name)
      return bytes.slice().buffer
    }
    return { byteLength, slice }
  }

  return { open, query: ask }
}

function gone(name: string): never {
  throw new ServoError('corrupt', 'value_missing', `there is nothing at ${name}`, {
    hint: 'It was deleted after it was made. Materialize the asset again.',
    facts: { path: name },
  })
}
