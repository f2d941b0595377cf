import type { InputRef, StoredValue } from '../../contract/dispatch.ts'
import { assert } from '../../lib/assert.ts'
import { type DataColumn, inferColumns } from '../columns.ts'
import type { Query } from '../declare/sql.ts'
import { createTable, type DataRow, type DataTable, type ValueStore, type WrittenFile } from '../declare/values.ts'

type Held = { readonly json: string } | { readonly bytes: Uint8Array } | { readonly rows: readonly DataRow[] }

/** Values in memory, for tests. */
export class MemoryValues implements ValueStore {
  readonly #held = new Map<string, Held>()

  async writeJson(json: string): Promise<WrittenFile> {
    return this.#keep({ json })
  }

  async readJson(value: StoredValue): Promise<unknown> {
    const held = this.#find(value)
    assert('json' in held, `${value.path} is not JSON`)
    return JSON.parse(held.json)
  }

  async writeBytes(bytes: Uint8Array): Promise<WrittenFile> {
    return this.#keep({ bytes })
  }

  async readBytes(value: StoredValue): Promise<Uint8Array> {
    const held = this.#find(value)
    assert('bytes' in held, `${value.path} is not bytes`)
    return held.bytes
  }

  async writeRows(rows: AsyncIterable<DataRow> | Iterable<DataRow>): Promise<WrittenFile> {
    const held = await Array.fromAsync(rows)
    return { ...this.#keep({ rows: held }), rows: held.length }
  }

  openTable(ref: InputRef, columns: readonly DataColumn[] | undefined): DataTable<DataRow> {
    const rows = ref.values.flatMap((value) => {
      const held = this.#find(value)
      assert('rows' in held, `${value.path} is not a table`)
      return held.rows
    })
    return createTable({
      files: [],
      columns: columns ?? inferColumns(rows),
      async *read() {
        // Copies, so that a body that changes its rows changes no one else's, as with rows from a file.
        for (const row of rows) yield structuredClone(row)
      },
      query: (query, tables) => this.runSql(query, tables, undefined),
    })
  }

  async *runSql(
    query: Query,
    tables: Readonly<Record<string, DataTable<DataRow>>>,
    columns: readonly DataColumn[] | undefined,
  ): AsyncIterable<DataRow> {
    // Loaded when first used: it brings DuckDB with it.
    const { queryTables } = await import('./query-tables.ts')
    yield* queryTables(query, tables, columns)
  }

  #keep(held: Held): WrittenFile {
    const path = `memory/${this.#held.size + 1}`
    this.#held.set(path, held)
    return { path }
  }

  #find({ path }: StoredValue): Held {
    const held = this.#held.get(path ?? '')
    assert(held !== undefined, `there is nothing at ${path}`)
    return held
  }
}
