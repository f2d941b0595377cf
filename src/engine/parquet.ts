import { constants, zstdCompressSync } from 'node:zlib'
import { type KeyValue, parquetMetadata, parquetSchema, type RowGroup } from 'hyparquet'
import { ByteWriter, ParquetWriter } from 'hyparquet-writer'
import type { AnyRow, Table } from '../model/table.ts'
import { ColumnBuffer } from './parquet-columns.ts'
import { decodeGroup, FORMAT, readFooter, sliceOf } from './parquet-read.ts'
import { encodingSchemaOf, rowColumns, schemaOf } from './parquet-schema.ts'
import type { Scope } from './paths.ts'

export type { Scope }

/** A look-up reads one row group: 5,000 rows are one range read of some 100 kB and a few milliseconds of decoding. */
export const ROW_GROUP_ROWS = 5_000

export interface WriterOptions {
  /** `snappy` for small files that live for minutes, `zstd` (half the size, but slower for a few rows) for those that stay. */
  readonly codec?: 'snappy' | 'zstd'
  readonly index?: FileIndex
  /** Rows are only copied when they are written, and encoded when the file is finished. */
  readonly encodeLater?: boolean
}

/** What a kind of file adds to its row groups and its footer, besides the rows. */
export interface FileIndex {
  /** Sees the columns of each row group and the bytes they became; returns the Bloom filters of its columns. */
  rowGroup(columns: ReadonlyMap<string, readonly unknown[]>, bytes: Uint8Array): ReadonlyMap<string, Uint32Array>
  metadata(): Record<string, string>
}

export interface TableWriter {
  write(rows: Iterable<AnyRow>): void
  /** The file. Nothing can be written afterwards. */
  finish(): Uint8Array
  /** The same file, with a pause after each row group: others get their turn while a large one is encoded. */
  finishInTurns(pause: () => Promise<unknown>): Promise<Uint8Array>
  readonly rows: number
}

/** The columns of a row group that waits to be encoded. */
interface PendingGroup {
  readonly columns: readonly ColumnBuffer[]
  count: number
}

// zstd's own default. A fixed level, because equal rows must give equal bytes; another zstd release may still differ.
const ZSTD = { params: { [constants.ZSTD_c_compressionLevel]: 3 } }
const compressors = { ZSTD: (page: Uint8Array): Uint8Array => zstdCompressSync(page, ZSTD) }

/** A whole file at once. */
export function encodeRows(table: Table, rows: readonly AnyRow[], scope: Scope, options: WriterOptions = {}): Uint8Array {
  const writer = tableWriter(table, scope, options)
  writer.write(rows)
  return writer.finish()
}

/**
 * Writes a file bit by bit. Its bytes depend on the rows and their order alone, not on how they were divided among calls
 * of `write`. Rows are copied, so they may change afterwards.
 */
export function tableWriter(table: Table, scope: Scope, options: WriterOptions = {}): TableWriter {
  const output = new ByteWriter()
  const parquet = new ParquetWriter({
    writer: output,
    schema: encodingSchemaOf(table),
    codec: options.codec === 'zstd' ? 'ZSTD' : 'SNAPPY',
    compressors,
  })
  const names = rowColumns(table).map(([name]) => name)
  // As in `stored`: what is the same for all rows comes first.
  const tenant = buffer('tenant_id')
  const workspace = buffer('workspace_id')
  const waiting: PendingGroup[] = []
  let open: PendingGroup | undefined
  let total = 0

  function buffer(name: string): ColumnBuffer {
    return new ColumnBuffer(table, name, table.stored[name]!)
  }

  function encode({ columns: own, count }: PendingGroup): void {
    const start = output.offset
    tenant.fill(scope.tenant_id, count)
    workspace.fill(scope.workspace_id, count)
    const columns = [tenant, workspace, ...own]
    parquet.write({
      columnData: columns.map((column) => ({ name: column.name, data: column.values, offsetIndex: false })),
      rowGroupSize: count,
    })
    const group = parquet.row_groups.at(-1)!
    dropWrongStatistics(group, new Set(columns.filter((column) => column.astral).map((column) => column.name)))
    if (options.index !== undefined) {
      const values = new Map(own.map((column) => [column.name, column.values]))
      addBloomFilters(parquet, group, options.index.rowGroup(values, output.getBytes().subarray(start)))
    }
  }

  function finish(): Uint8Array {
    parquet.kvMetadata = Object.entries({
      'servo.table': table.name,
      'servo.format': FORMAT,
      ...options.index?.metadata(),
    }).map(([key, value]): KeyValue => ({ key, value }))
    parquet.schema = schemaOf(table)
    parquet.finish()
    return new Uint8Array(output.getBuffer())
  }

  return {
    get rows() {
      return total
    },
    write(rows) {
      for (const row of rows) {
        if (open === undefined) {
          open = { columns: names.map(buffer), count: 0 }
          waiting.push(open)
        }
        for (const column of open.columns) column.push(row)
        total++
        if (++open.count < ROW_GROUP_ROWS) continue
        open = undefined
        if (!options.encodeLater) encode(waiting.pop() as PendingGroup)
      }
    },
    finish() {
      for (const group of waiting.splice(0)) encode(group)
      return finish()
    },
    async finishInTurns(pause) {
      for (let group = waiting.shift(); group !== undefined; group = waiting.shift()) {
        encode(group)
        await pause()
      }
      return finish()
    },
  }
}

/** The writer has one switch for all statistics; taking the wrong ones out of the unfinished footer spares the others. */
function dropWrongStatistics(group: RowGroup, columns: ReadonlySet<string>): void {
  for (const { meta_data } of group.columns) {
    const nulls = meta_data?.statistics?.null_count
    if (meta_data !== undefined && nulls !== undefined && columns.has(meta_data.path_in_schema[0]!))
      meta_data.statistics = { null_count: nulls }
  }
}

/** The writer can make Bloom filters itself, but hashes with BigInt: four microseconds a value against less than one. */
function addBloomFilters(parquet: ParquetWriter, group: RowGroup, filters: ReadonlyMap<string, Uint32Array>): void {
  for (const chunk of group.columns) {
    const filter = filters.get(chunk.meta_data!.path_in_schema[0]!)
    const pending = filter && parquet.pendingIndexes.find((index) => index.chunk === chunk)
    if (pending) pending.bloomFilter = filter
  }
}

/**
 * The rows of a file as they were written. Files of an older version of the table give null for the columns they lack,
 * those of a newer one are read without the columns we do not know. `file` is what an error calls it.
 */
export async function decodeRows(table: Table, bytes: Uint8Array, file = `a file of ${table.name}`): Promise<AnyRow[]> {
  const footer = readFooter(table, bytes, file)
  const rows: AnyRow[] = []
  for (const group of footer.groups) {
    const batch = await decodeGroup(footer, group, sliceOf(bytes, group.start))
    for (const row of batch.rows()) rows.push(row)
  }
  return rows
}

/** The columns that a file has, which an older version of the table may have had fewer of. */
export function storedColumns(bytes: Uint8Array): Set<string> {
  const metadata = parquetMetadata(bytes.slice().buffer as ArrayBuffer)
  return new Set(parquetSchema(metadata).children.map((column) => column.element.name))
}
