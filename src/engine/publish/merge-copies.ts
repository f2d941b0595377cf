import { decodeColumns, readFooter, sliceOf } from '../parquet/read.ts'
import { type FileShape, rowColumns } from '../parquet/schema.ts'
import type { Scope } from '../paths.ts'
import type { FileCopy } from './file-copy.ts'

/** Sorted files that become one, as plain data for another thread. No two of them have a key in common. */
export interface FilesToMerge {
  readonly table: FileShape
  readonly scope: Scope
  readonly files: readonly { readonly path: string; readonly bytes: Uint8Array }[]
  /** Of all files together. */
  readonly rows: number
}

/**
 * All rows of some files as one copy, column by column: rows are not made, and values need not be checked and copied one by one. Encoding
 * sorts the rows, which is little work for rows that come as a few sorted sequences. `pause` is awaited after each row group.
 */
export async function copyOfAll(
  { table, scope, files, rows }: FilesToMerge,
  pause: () => Promise<unknown> | undefined = () => undefined,
): Promise<FileCopy> {
  const names = rowColumns(table).map(([name]) => name)
  const columns: unknown[][] = names.map(() => [])
  for (const { path, bytes } of files) {
    const footer = readFooter(table, bytes, path)
    for (const group of footer.groups) {
      const found = await decodeColumns(footer, group, sliceOf(bytes, group.start), footer.plan.present)
      for (const [i, name] of names.entries()) {
        const values = found.get(name)
        const column = columns[i]!
        // A file of an earlier version may lack the column.
        for (let row = 0; row < group.rows; row++) column.push(values?.[row] ?? null)
      }
      await pause()
    }
  }
  return { table, scope, codec: 'zstd', isSortedFile: true, rows, columns }
}
