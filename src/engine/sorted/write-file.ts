import { crc32 } from 'node:zlib'
import { ServoError } from '../../lib/error.ts'
import type { KeyPart } from '../../model/rows.ts'
import type { AnyRow } from '../../model/table.ts'
import { compareTuples, type KeyTuple, keyText } from '../fold/row-merge.ts'
import type { FileShape } from '../parquet/schema.ts'
import { type FileIndex, type TableWriter, tableWriter } from '../parquet/write.ts'
import type { Scope } from '../paths.ts'
import { bloomOf } from './bloom-filter.ts'
import { type Digest, describeSortedFile, type GroupEntry, type GroupValues } from './index-footer.ts'

/** A whole sorted file at once, of rows in key order. */
export function encodeSortedFile(table: FileShape, rows: readonly AnyRow[], scope: Scope): Uint8Array {
  const writer = sortedFileWriter(table, scope)
  writer.write(rows)
  return writer.finish()
}

export function sortedFileWriter(table: FileShape, scope: Scope): TableWriter {
  return tableWriter(table, scope, { codec: 'zstd', index: keyIndex(table) })
}

/** Checks the order of rows, and collects what the file will be searched and checked by. */
export function keyIndex(table: FileShape): FileIndex {
  const groups: GroupEntry[] = []
  let last: KeyTuple | null = null
  return {
    rowGroup(columns, bytes) {
      const parts = table.key.map((name) => keyParts(table, name, columns.get(name) ?? []))
      const count = parts[0]!.length
      for (let i = 0; i < count; i++) {
        const key = parts.map((values) => values[i]!)
        if (last !== null && compareTuples(last, key) >= 0) throw notSorted(table, last, key)
        last = key
      }
      // One for each part of the key: which part is selective differs from table to table, and a filter of few values
      // takes a few bytes. A history file needs none: the index says which file has a row.
      const filters =
        table.history === undefined ? table.key.map((name, i): [string, Uint32Array] => [name, bloomOf(parts[i]!)]) : []
      groups.push({
        first_key: parts.map((values) => values[0]!),
        crc32: crc32(bytes),
        filter_crc32: filters.map(([, filter]) => crc32(filter)),
        ...(table.digest !== undefined && {
          digest: { rows: count, last_key: last!, columns: digestOf(columns, table.digest) },
        }),
        ...(table.history !== undefined &&
          table.history.filters.length > 0 && { values: valuesOf(columns, table.history.filters) }),
      })
      return new Map(filters)
    },
    metadata: () => describeSortedFile({ last_key: last, groups }),
  }
}

/** The values of a column that is part of the key, as rows have them: moments are stored as 64 bits. */
function keyParts({ stored }: FileShape, name: string, values: readonly unknown[]): readonly KeyPart[] {
  return stored[name]?.kind === 'timestamp' ? values.map(Number) : (values as readonly KeyPart[])
}

/** More values than this are kept as a Bloom filter, which then takes less room. */
const FEW_VALUES = 16

function valuesOf(columns: ReadonlyMap<string, readonly unknown[]>, names: readonly string[]): GroupValues {
  const found: Record<string, readonly string[] | string> = {}
  for (const name of names) {
    const values = new Set<string>()
    for (const value of columns.get(name) ?? []) {
      if (typeof value === 'string') values.add(value)
      else if (Array.isArray(value)) for (const one of value) values.add(String(one))
    }
    found[name] =
      values.size <= FEW_VALUES ? [...values].sort() : Buffer.from(bytesOf(bloomOf([...values].sort()))).toString('base64')
  }
  return found
}

const bytesOf = (words: Uint32Array): Uint8Array => new Uint8Array(words.buffer, words.byteOffset, words.byteLength)

function digestOf(columns: ReadonlyMap<string, readonly unknown[]>, names: readonly string[]): Digest['columns'] {
  const digest: Record<string, { nulls: number; only?: string }> = {}
  for (const name of names) {
    let nulls = 0
    let only: unknown
    let isSame = true
    for (const value of columns.get(name) ?? []) {
      if (value === null || value === undefined) nulls++
      else if (only === undefined) only = value
      else isSame &&= value === only
    }
    digest[name] = { nulls, ...(isSame && typeof only === 'string' && { only }) }
  }
  return digest
}

function notSorted(table: FileShape, last: KeyTuple, key: KeyTuple): ServoError {
  return new ServoError(
    'bug',
    'file_not_sorted',
    `a sorted file of ${table.name} cannot have ${keyText(key)} after ${keyText(last)}`,
    {
      hint: 'Rows of a sorted file come in key order, each key once. Sort and merge them first.',
      facts: { table: table.name, last, key },
    },
  )
}
