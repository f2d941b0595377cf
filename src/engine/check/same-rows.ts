import { sha256 } from '../../lib/hash.ts'
import { canonicalJson } from '../../lib/json.ts'
import type { AnyRow, Table } from '../../model/table.ts'
import { decodeRows, storedColumns } from '../parquet/parquet.ts'

interface Compared {
  readonly path: string
  /** The file as it is, and as a replay makes it. */
  readonly bytes: Uint8Array
  readonly replayed: Uint8Array
  /** The SHA-256 of values that the ledger no longer has. What a table says of such a value does not follow from the ledger any more. */
  readonly forgotten: ReadonlySet<string>
}

/**
 * True if both files have the same rows. The file of an earlier version of Servo has other bytes and perhaps fewer columns; and rows that
 * tell of a forgotten value are left out, with those that a replay has under their keys.
 */
export async function holdSameRows(table: Table, { path, bytes, replayed, forgotten }: Compared): Promise<boolean> {
  const columns = storedColumns(bytes)
  const keyOf = (row: AnyRow): string => canonicalJson(table.key.map((column) => row[column]))
  const shown = (row: AnyRow): string =>
    canonicalJson(Object.fromEntries(Object.entries(row).filter(([column]) => columns.has(column))))
  const [before, after] = [await decodeRows(table, bytes, path), await decodeRows(table, replayed, path)]
  const passed = new Set<string>()
  if (forgotten.size > 0)
    for (const row of before) if (tellsOf(shown(row), forgotten) || holds(row, forgotten)) passed.add(keyOf(row))
  const [old, made] = [before, after].map((rows) => rows.filter((row) => !passed.has(keyOf(row))).map(shown))
  return old?.length === made?.length && (old ?? []).every((row, i) => row === made?.[i])
}

/** A table may have the value itself, without its checksum. */
const holds = (row: AnyRow, forgotten: ReadonlySet<string>): boolean =>
  Object.values(row).some((value) => typeof value === 'string' && forgotten.has(sha256(value)))

const CHECKSUM = /[0-9a-f]{64}/g

function tellsOf(row: string, forgotten: ReadonlySet<string>): boolean {
  for (const [checksum] of row.matchAll(CHECKSUM)) if (forgotten.has(checksum)) return true
  return false
}
