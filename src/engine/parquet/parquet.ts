import { parquetMetadata, parquetSchema } from 'hyparquet'
import type { AnyRow, Table } from '../../model/table.ts'
import type { Scope } from '../paths.ts'
import { decodeGroup, readFooter, sliceOf } from './read.ts'
import { tableWriter, type WriterOptions } from './write.ts'

/** A whole file at once. */
export function encodeTableRows(table: Table, rows: readonly AnyRow[], scope: Scope, options: WriterOptions = {}): Uint8Array {
  const writer = tableWriter(table, scope, options)
  writer.write(rows)
  return writer.finish()
}

/**
 * The rows of a file as they were written. Files of an older version of the table give null for the columns they lack,
 * those of a newer one are read without the columns we do not know. `file` is what an error calls it.
 */
export async function decodeRows(table: Table, bytes: Uint8Array, file = `a file of ${table.name}`): Promise<AnyRow[]> {
  const footer = readFooter(table, bytes, file)
  const rows: AnyRow[] = []
  for (const group of footer.groups) {
    for (const row of await decodeGroup(footer, group, sliceOf(bytes, group.start))) rows.push(row)
  }
  return rows
}

/** The columns that a file has. A file of an older version of the table may have fewer. */
export function storedColumns(bytes: Uint8Array): Set<string> {
  const metadata = parquetMetadata(bytes)
  return new Set(parquetSchema(metadata).children.map((column) => column.element.name))
}
