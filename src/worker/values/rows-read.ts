import {
  type AsyncBuffer,
  asyncBufferFromFile,
  type FileMetaData,
  parquetMetadataAsync,
  parquetReadObjects,
  parquetSchema,
} from 'hyparquet'
import { isServoError, messageOf, ServoError } from '../../lib/error.ts'
import { decompressors, textOf } from '../../parquet/codecs.ts'
import type { DataColumn as Column } from '../../sdk/columns.ts'
import type { DataRow as Row } from '../../sdk/declare/values.ts'
import { COLUMNS_KEY, NO_COLUMNS } from './rows-write.ts'

const parsers = {
  stringFromBytes: textOf,
  jsonFromBytes: (bytes: Uint8Array): unknown => JSON.parse(textOf(bytes)),
}

/**
 * Reads the rows of a Parquet file, with one row group in memory at a time. `columns` has the types of values in code; without it
 * the metadata of the file has them, and without that values have the types of Parquet.
 */
export async function* readRows(file: AsyncBuffer, columns: readonly Column[] | undefined, path: string): AsyncGenerator<Row> {
  try {
    const metadata = await parquetMetadataAsync(file)
    const look = lookOf(columns ?? columnsIn(metadata) ?? [])
    let rowStart = 0
    for (const group of metadata.row_groups) {
      const rowEnd = rowStart + Number(group.num_rows)
      const rows = await parquetReadObjects({ file, metadata, rowStart, rowEnd, compressors: decompressors, parsers })
      for (const row of rows) yield look(row)
      rowStart = rowEnd
    }
  } catch (error) {
    if (isServoError(error)) throw error
    throw new ServoError('corrupt', 'file_unreadable', `${path} cannot be read as Parquet: ${messageOf(error)}`, {
      hint: 'Materialize the asset again. For a source, check the program that writes the file.',
      facts: { path },
      cause: error,
    })
  }
}

/** The columns of a Parquet file, as the file has them. */
export async function columnNames(file: string): Promise<readonly string[]> {
  const { schema } = await parquetMetadataAsync(await asyncBufferFromFile(file))
  return parquetSchema({ schema } as FileMetaData)
    .children.map(({ element }) => element.name)
    .filter((name) => name !== NO_COLUMNS.name)
}

function columnsIn(metadata: FileMetaData): readonly Column[] | undefined {
  const text = metadata.key_value_metadata?.find(({ key }) => key === COLUMNS_KEY)?.value
  return text === undefined ? undefined : (JSON.parse(text) as Column[])
}

/** Converts a stored row to the types that code expects. */
function lookOf(columns: readonly Column[]): (row: Record<string, unknown>) => Row {
  return (row) => {
    for (const { name, type, empty } of columns) {
      const value = row[name]
      if (value === null || value === undefined) {
        if (empty === 'undefined') delete row[name]
        else row[name] = null
      } else if (type === 'bigint') row[name] = typeof value === 'number' ? BigInt(value) : value
      else if (typeof value === 'bigint') row[name] = Number(value)
    }
    delete row[NO_COLUMNS.name]
    return row
  }
}
