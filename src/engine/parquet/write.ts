import type { AnyRow } from '../../model/table.ts'
import { FileWriter } from '../../parquet/file-writer.ts'
import { firstOfKey } from '../fold/row-merge.ts'
import type { Scope } from '../paths.ts'
import { storedColumn, valueCopier } from './column-values.ts'
import { type FileShape, FORMAT, rowColumns, schemaOf } from './schema.ts'

/** A look-up reads one row group: 5,000 rows are one range read of some 100 kB. */
export const ROW_GROUP_ROWS = 5_000
/** In a table that is read by column, a row group of at least this many rows also ends where the first part of the key changes. */
const OWN_GROUP_ROWS = 1_000

/** The most rows that a row group has. */
export const groupRowsOf = ({ history, groupRows }: Pick<FileShape, 'history' | 'groupRows'>): number =>
  history?.groupRows ?? groupRows ?? ROW_GROUP_ROWS

/** True if a row group with this many rows ends before the next row. `last` and `next` are the first parts of the two rows' keys. */
export function endsGroup(shape: FileShape, rows: number, last: unknown, next: unknown): boolean {
  return rows === groupRowsOf(shape) || (shape.digest !== undefined && rows >= OWN_GROUP_ROWS && last !== next)
}

export interface WriterOptions {
  /** `snappy` for small files that live for minutes, `zstd` (half the size, but slower for a few rows) for files that stay. */
  readonly codec?: 'snappy' | 'zstd'
  readonly index?: FileIndex
}

/** The additions of a kind of file to its row groups and its footer, besides the rows. */
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
  finish(): Uint8Array<ArrayBuffer>
}

/**
 * Timestamps in files that are read by column, which are those of tables with a digest, and history: neighbours differ by little, so differences are
 * smaller than timestamps under zstd, take as long to write, and are read without making a zstd object for every page.
 */
const DELTAS = { encoding: 'DELTA_BINARY_PACKED', codec: 'UNCOMPRESSED' } as const

/** Writes a file row group by row group. */
export function groupWriter(table: FileShape, scope: Scope, options: WriterOptions = {}): GroupWriter {
  const file = new FileWriter({ schema: schemaOf(table), codec: options.codec === 'zstd' ? 'ZSTD' : 'SNAPPY' })
  const names = rowColumns(table).map(([name]) => name)
  const isReadByColumn = options.codec === 'zstd' && (table.digest !== undefined || table.history !== undefined)
  const encodings = new Map(
    Object.entries(table.stored).map(([name, { kind }]) => [name, isReadByColumn && kind === 'timestamp' ? DELTAS : {}]),
  )
  // As in `stored`: what is the same for all rows comes first.
  const everywhere = { tenant_id: scope.tenant_id, workspace_id: scope.workspace_id }

  return {
    write(copied, rows) {
      const keyAt = (row: number): unknown[] =>
        table.key.map((name) => {
          const values = copied[names.indexOf(name)] ?? []
          return values[values.length === 1 ? 0 : row]
        })
      const columns = [
        ...Object.entries(everywhere).map(([name, value]) => storedColumn(table, name, [value], keyAt)),
        ...names.map((name, i) => storedColumn(table, name, copied[i] ?? [], keyAt)),
      ].map(({ name, values, astral }) => ({
        name,
        values: values.length < rows ? new Array(rows).fill(values[0]) : values,
        ...(astral && { statistics: 'nulls' as const }),
        ...encodings.get(name),
      }))
      // A file that is read by column has one page for each column.
      const bytes = file.write(columns, rows, isReadByColumn ? { pageSize: 0 } : {})
      if (options.index === undefined) return
      const values = new Map(columns.map((column) => [column.name, column.values]))
      file.addBloomFilters(options.index.rowGroup(values, bytes))
    },
    finish: () => file.finish({ 'servo.table': table.name, 'servo.format': FORMAT, ...options.index?.metadata() }),
  }
}

export interface TableWriter {
  write(rows: Iterable<AnyRow>): void
  /** The file. Nothing can be written afterwards. */
  finish(): Uint8Array<ArrayBuffer>
  readonly rows: number
}

/**
 * Writes a file bit by bit. Its bytes depend on the rows and their order alone, not on how they were divided among calls
 * of `write`. Rows are copied, so they may change afterwards.
 */
export function tableWriter(table: FileShape, scope: Scope, options: WriterOptions = {}): TableWriter {
  const groups = groupWriter(table, scope, options)
  const copiers = rowColumns(table).map(([name]) => valueCopier(table, name))
  const owner = firstOfKey(table)
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
