import { existsSync } from 'node:fs'
import { rm, symlink, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { type AsyncBuffer, asyncBufferFromFile } from 'hyparquet'
import type { InputRef, StoredValue } from '../../contract/dispatch.ts'
import { ServoError } from '../../lib/error.ts'
import type { DataColumn } from '../../sdk/columns.ts'
import type { Query } from '../../sdk/declare/sql.ts'
import { createTable, type DataRow, type DataTable, sourceOfTable } from '../../sdk/declare/values.ts'
import { makeScratchFolder } from '../scratch-folder.ts'
import { readRows } from './rows-read.ts'
import { encodeRows } from './rows-write.ts'
import { sourceFiles } from './source-files.ts'
import { checkBytes, checkFile, checkSize, checkStoredPath, throwMissing } from './stored-file.ts'
import type { ValueStorage } from './stored-values.ts'

type TablesByName = Readonly<Record<string, DataTable<DataRow>>>
type KnownColumns = readonly DataColumn[] | undefined

export interface StoredTables {
  open(ref: InputRef, columns: KnownColumns): Promise<DataTable<DataRow>>
  query(query: Query, named: TablesByName, columns: KnownColumns): AsyncIterable<DataRow>
}

/** A value of a table that is on record, with size and checksum as far as they are. */
type StoredRows = StoredValue & { readonly path: string }

/** An object up to this size is read whole, and its checksum compared; of a larger one, rows are read where they are wanted. */
const WHOLE_BYTES = 16 * 2 ** 20

/** Tables as Parquet files, in a folder or another store. Rows are read in place; for DuckDB, other stores are copied into files. */
export function storedTables({ store, fileOf, projectDir }: ValueStorage): StoredTables {
  /** For tables that are not stored in files: the objects that hold them. */
  const remote = new WeakMap<DataTable<DataRow>, readonly StoredRows[]>()
  /** For tables in files: compares them with what is on record, once, before they are first read. */
  const checks = new WeakMap<DataTable<DataRow>, () => Promise<void>>()
  let copies = 0

  async function open(ref: InputRef, columns: KnownColumns): Promise<DataTable<DataRow>> {
    if (ref.uri) {
      const files = await sourceFiles(ref, projectDir)
      return tableOf(files, files, asyncBufferFromFile, columns)
    }
    // A table may be empty, but its path must be on record.
    const objects = ref.values.map((value) => ({ ...value, path: value.path ?? throwUnknownPath(ref.asset_key) }))
    for (const { path } of objects) checkStoredPath(path, fileOf)
    const named = new Map(objects.map((object) => [object.path, object]))
    const paths = objects.map(({ path }) => path)
    if (fileOf === undefined) {
      const table = tableOf(paths, [], (name) => objectBuffer(name, named.get(name)), columns)
      remote.set(table, objects)
      return table
    }
    let checking: Promise<void> | undefined
    const check = (): Promise<void> => {
      checking ??= checkAll(named.values(), fileOf)
      return checking
    }
    const table = tableOf(
      paths,
      paths.map(fileOf),
      async (name) => {
        await check()
        return objectBuffer(name)
      },
      columns,
    )
    checks.set(table, check)
    return table
  }

  function tableOf(
    paths: readonly string[],
    files: readonly string[],
    buffer: (name: string) => Promise<AsyncBuffer>,
    columns: KnownColumns,
  ): DataTable<DataRow> {
    return createTable({
      files,
      columns,
      async *read() {
        for (const name of paths) yield* readRows(await buffer(name), columns, name)
      },
      query: (query, tables) => run(query, tables, undefined),
    })
  }

  async function* run(query: Query, named: TablesByName, columns: KnownColumns): AsyncIterable<DataRow> {
    // Loaded when first used: it takes a tenth of a second, and most assets have no queries.
    const { runQuery } = await import('./run-query.ts')
    const folder = await makeScratchFolder('query')
    try {
      yield* runQuery(query, { named, columns, folder, filesOf: (table) => filesOf(table, folder) })
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  }

  /** A table as files that DuckDB can open: where they are, or copied into the folder. */
  async function filesOf(table: DataTable<DataRow>, folder: string): Promise<readonly string[]> {
    await checks.get(table)?.()
    if (table.files.length > 0) return Promise.all(table.files.map((file) => withoutPattern(file, folder)))
    const bodies = remote.get(table)?.map(wholeObject) ?? []
    if (bodies.length === 0) bodies.push(encodeRows(table, sourceOfTable(table)?.columns).then(({ bytes }) => bytes))
    return Promise.all(
      bodies.map(async (body) => {
        const file = path.join(folder, `${copies++}.parquet`)
        await writeFile(file, await body)
        return file
      }),
    )
  }

  /** DuckDB treats every path as a pattern. A file whose path has pattern characters is opened through a link without them. */
  async function withoutPattern(file: string, folder: string): Promise<string> {
    if (!/[*?[\]{}\\]/.test(file)) return file
    const link = path.join(folder, `${copies++}.parquet`)
    await symlink(path.resolve(file), link)
    return link
  }

  async function wholeObject(object: StoredRows): Promise<Uint8Array> {
    const bytes = (await store.get(object.path)) ?? throwMissing(object.path)
    checkBytes(object.path, bytes, object)
    return bytes
  }

  async function objectBuffer(name: string, object?: StoredRows): Promise<AsyncBuffer> {
    const byteLength = (await store.size(name)) ?? throwMissing(name)
    if (object !== undefined) checkSize(name, byteLength, object)
    if (object?.sha256 && byteLength <= WHOLE_BYTES) {
      const { buffer } = (await wholeObject(object)).slice()
      return buffer
    }
    const slice = async (start: number, end = byteLength): Promise<ArrayBuffer> => {
      const bytes = (await store.getRange(name, start, end - start)) ?? throwMissing(name)
      return bytes.slice().buffer
    }
    return { byteLength, slice }
  }

  return { open, query: run }
}

/** One after the other: they share a disk, and there may be many thousands. */
async function checkAll(objects: Iterable<StoredRows>, fileOf: (path: string) => string): Promise<void> {
  for (const object of objects) {
    const file = fileOf(object.path)
    if (!existsSync(file)) throwMissing(object.path)
    await checkFile(file, object.path, object)
  }
}

function throwUnknownPath(assetKey: string): never {
  throw new ServoError('not_found', 'value_missing', `the path of the rows of ${assetKey} was not recorded`, {
    hint: 'They were materialized outside Servo, or by a version that did not record the path. Materialize the asset again.',
  })
}
