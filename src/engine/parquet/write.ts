import { constants, zstdCompressSync } from 'node:zlib'
import type { KeyValue, RowGroup } from 'hyparquet'
import { ByteWriter, ParquetWriter } from 'hyparquet-writer'
import type { KeyPart } from '../../model/rows.ts'
import type { AnyRow } from '../../model/table.ts'
import type { Scope } from '../paths.ts'
import { storedColumn, valueCopier } from './column-values.ts'
import { encodingSchemaOf, type FileShape, FORMAT, rowColumns, schemaOf } from './schema.ts'

/** A look-up reads one row group: 5,000 rows are one range read of some 100 kB. */
export const ROW_GROUP_ROWS = 5_000
/** Of a table that is read by column, a row group also ends where the first part of the key changes, unless it has fewer rows. */
const OWN_GROUP_ROWS = 1_000

/** Whether a row group that has so many rows ends before the next one, given the first parts of their keys. */
export function endsGroup({ digest }: FileShape, rows: number, last: unknown, next: unknown): boolean {
  return rows === ROW_GROUP_ROWS || (digest !== undefined && rows >= OWN_GROUP_ROWS && last !== next)
}

export interface WriterOptions {
  /** `snappy` for small files that live for minutes, `zstd` (half the size, but slower for a few rows) for those that stay. */
  readonly codec?: 'snappy' | 'zstd'
  readonly index?: FileIndex
}

/** What a kind of file adds to its row groups and its footer, besides the rows. */
export interface FileIndex {
  /** Sees the columns of each row group and the bytes they became; returns the Bloom filters of its columns. */
  rowGroup(columns: ReadonlyMap<string, readonly unknown[]>, bytes: Uint8Array): ReadonlyMap<string, Uint32Array>
  metadata(): Record<string, string>
}

/** Some values of each column of a table, in its order, as `valueCopier` takes them out of rows. */
export type CopiedColumns = readonly (readonly unknown[])[]

export interface GroupWriter {
  /** Writes a row group. A column of one value has that value in all rows. */
  write(columns: CopiedColumns, rows: number): void
  /** The file. Nothing can be written afterwards. */
  finish(): Uint8Array
}

// zstd's own default. A fixed level, because equal rows must give equal bytes; another zstd release may still differ.
const ZSTD = { params: { [constants.ZSTD_c_compressionLevel]: 3 } }
const compressors = { ZSTD: (page: Uint8Array): Uint8Array => zstdCompressSync(page, ZSTD) }

/**
 * Moments in files that are read by column, as tables with a digest are: neighbours differ by little, so differences are smaller
 * than what zstd makes of the moments, take as long to write, and are read without making a zstd object for every page.
 */
const DELTAS = { encoding: 'DELTA_BINARY_PACKED', codec: 'UNCOMPRESSED' } as const

/** Writes a file row group by row group. */
export function groupWriter(table: FileShape, scope: Scope, options: WriterOptions = {}): GroupWriter {
  const output = new ByteWriter()
  const parquet = new ParquetWriter({
    writer: output,
    schema: encodingSchemaOf(table),
    codec: options.codec === 'zstd' ? 'ZSTD' : 'SNAPPY',
    compressors,
  })
  const names = rowColumns(table).map(([name]) => name)
  const encodings = new Map(
    Object.entries(table.stored).map(([name, { kind }]) => [
      name,
      options.codec === 'zstd' && table.digest && kind === 'timestamp' ? DELTAS : {},
    ]),
  )
  // As in `stored`: what is the same for all rows comes first.
  const everywhere = { tenant_id: scope.tenant_id, workspace_id: scope.workspace_id }

  return {
    write(copied, rows) {
      const start = output.offset
      const valueAt = (name: string, row: number): KeyPart => {
        const values = copied[names.indexOf(name)]!
        return values[values.length === 1 ? 0 : row] as KeyPart
      }
      const keyAt = (row: number): KeyPart[] => table.key.map((name) => valueAt(name, row))
      const columns = [
        ...Object.entries(everywhere).map(([name, value]) => storedColumn(table, name, [value], keyAt)),
        ...names.map((name, i) => storedColumn(table, name, copied[i]!, keyAt)),
      ].map((column) => (column.values.length < rows ? { ...column, values: new Array(rows).fill(column.values[0]) } : column))
      parquet.write({
        columnData: columns.map(({ name, values }) => ({
          name,
          data: values as unknown[],
          offsetIndex: false,
          ...encodings.get(name),
        })),
        rowGroupSize: rows,
        // What is read by column has one page for each.
        ...(options.codec === 'zstd' && table.digest && { pageSize: 0 }),
      })
      const group = parquet.row_groups.at(-1)!
      dropWrongStatistics(group, new Set(columns.filter((column) => column.astral).map((column) => column.name)))
      if (options.index !== undefined) {
        const values = new Map(columns.map((column) => [column.name, column.values]))
        addBloomFilters(parquet, group, options.index.rowGroup(values, output.getBytes().subarray(start)))
      }
    },
    finish() {
      parquet.kvMetadata = Object.entries({
        'servo.table': table.name,
        'servo.format': FORMAT,
        ...options.index?.metadata(),
      }).map(([key, value]): KeyValue => ({ key, value }))
      parquet.schema = schemaOf(table)
      parquet.finish()
      return new Uint8Array(output.getBuffer())
    },
  }
}

export interface TableWriter {
  write(rows: Iterable<AnyRow>): void
  /** The file. Nothing can be written afterwards. */
  finish(): Uint8Array
  readonly rows: number
}

/**
 * Writes a file bit by bit. Its bytes depend on the rows and their order alone, not on how they were divided among calls
 * of `write`. Rows are copied, so they may change afterwards.
 */
export function tableWriter(table: FileShape, scope: Scope, options: WriterOptions = {}): TableWriter {
  const groups = groupWriter(table, scope, options)
  const copiers = rowColumns(table).map(([name]) => valueCopier(table, name))
  const owner = table.key[0] as string
  let columns: unknown[][] = copiers.map(() => [])
  let last: unknown
  let count = 0
  let total = 0

  function flush(): void {
    if (count > 0) groups.write(columns, count)
    columns = copiers.map(() => [])
    count = 0
  }

  return {
    get rows() {
      return total
    },
    write(rows) {
      for (const row of rows) {
        if (endsGroup(table, count, last, row[owner])) flush()
        for (let i = 0; i < copiers.length; i++) columns[i]!.push(copiers[i]!(row))
        last = row[owner]
        total += 1
        count += 1
      }
    },
    finish() {
      flush()
      return groups.finish()
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
