import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { type AsyncBuffer, asyncBufferFromFile } from 'hyparquet'
import type { InputRef } from '../../contract/dispatch.ts'
import { ServoError } from '../../lib/error.ts'
import type { DataColumn } from '../../sdk/columns.ts'
import type { Query } from '../../sdk/declare/sql.ts'
import { createTable, type DataRow, type DataTable, sourceOfTable } from '../../sdk/declare/values.ts'
import { readRows } from './rows-read.ts'
import { encodeRows } from './rows-write.ts'
import { sourceFiles } from './source-files.ts'
import { checkStoredPath } from './stored-file.ts'
import type { ValueStorage } from './values.ts'

type Tables = Readonly<Record<string, DataTable<DataRow>>>
type Columns = readonly DataColumn[] | undefined

export interface StoredTables {
  open(ref: InputRef, columns: Columns): Promise<DataTable<DataRow>>
  query(query: Query, named: Tables, columns: Columns): AsyncIterable<DataRow>
}

/** Tables as Parquet files, in a folder or anywhere else. Rows are read from where they are; DuckDB wants files. */
export function storedTables({ store, fileOf, projectDir }: ValueStorage): StoredTables {
  /** The objects of tables that do not lie in files. */
  const remote = new WeakMap<DataTable<DataRow>, readonly string[]>()
  let copies = 0

  async function open(ref: InputRef, columns: Columns): Promise<DataTable<DataRow>> {
    if (ref.uri) {
      const files = await sourceFiles(ref, projectDir)
      return tableOf(files, files, asyncBufferFromFile, columns)
    }
    // A table may be empty, but its place must be known.
    const objects = ref.values.map(({ path }) => path ?? nowhere(ref.asset_key))
    for (const object of objects) checkStoredPath(object, fileOf)
    const table = tableOf(objects, fileOf === undefined ? [] : objects.map(fileOf), objectBuffer, columns)
    if (fileOf === undefined) remote.set(table, objects)
    return table
  }

  function tableOf(
    paths: readonly string[],
    files: readonly string[],
    buffer: (name: string) => Promise<AsyncBuffer>,
    columns: Columns,
  ): DataTable<DataRow> {
    return createTable({
      files,
      columns,
      async *read() {
        for (const name of paths) yield* readRows(await buffer(name), columns, name)
      },
      query: (query, tables) => ask(query, tables, undefined),
    })
  }

  async function* ask(query: Query, named: Tables, columns: Columns): AsyncIterable<DataRow> {
    // Loaded when first used: it takes a tenth of a second, and most assets never ask.
    const { runQuery } = await import('./query.ts')
    const folder = await mkdtemp(path.join(tmpdir(), 'servo-query-'))
    try {
      yield* runQuery(query, { named, columns, folder, filesOf: (table) => filesOf(table, folder) })
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  }

  /** A table as files that DuckDB can open: where they are, or copied into the folder. */
  async function filesOf(table: DataTable<DataRow>, folder: string): Promise<readonly string[]> {
    if (table.files.length > 0) return Promise.all(table.files.map((file) => meaningItself(file, folder)))
    const bodies = remote.get(table)?.map(async (name) => (await store.get(name)) ?? gone(name)) ?? []
    if (bodies.length === 0) bodies.push(encodeRows(table, sourceOfTable(table)?.columns).then(({ bytes }) => bytes))
    return Promise.all(
      bodies.map(async (body) => {
        const file = path.join(folder, `${copies++}.parquet`)
        await writeFile(file, await body)
        return file
      }),
    )
  }

  /** DuckDB takes every path for a pattern, and a project folder or source file may be named like one: then it gets a link. */
  async function meaningItself(file: string, folder: string): Promise<string> {
    if (!/[*?[\]{}\\]/.test(file)) return file
    const link = path.join(folder, `${copies++}.parquet`)
    await symlink(path.resolve(file), link)
    return link
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

function nowhere(assetKey: string): never {
  throw new ServoError('not_found', 'value_missing', `nobody knows where the rows of ${assetKey} are`, {
    hint: 'They were made outside of Servo, or by a version that did not write it down. Materialize it again.',
  })
}

function gone(name: string): never {
  throw new ServoError('corrupt', 'value_missing', `there is nothing at ${name}`, {
    hint: 'It was deleted after it was made. Materialize the asset again.',
    facts: { path: name },
  })
}
