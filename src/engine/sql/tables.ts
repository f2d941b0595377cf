import { quoteName, quoteText } from '../../lib/sql/sql-text.ts'
import type { ColumnKind } from '../../model/column.ts'
import type { Table } from '../../model/table.ts'
import { firstOfKey } from '../fold/row-merge.ts'
import { mergedQuery } from './merge.ts'
import { cast, columnList, onKeys } from './text.ts'

/** The files of one table as SQL reads them: the first four are those of a hot table, `versions` all of a cold one. */
export type SqlLayer = 'base' | 'l0' | 'removed' | 'history' | 'versions'

/** What stands for a layer in a FROM clause; a layer without files has none. */
export type Relations = Partial<Record<SqlLayer, string>>

export const layersOf = (table: Table): readonly SqlLayer[] =>
  table.storage.kind === 'cold' ? ['versions'] : ['base', 'l0', 'removed', 'history']

const TYPES: Record<ColumnKind, string> = {
  string: 'VARCHAR',
  int: 'INTEGER',
  long: 'BIGINT',
  double: 'DOUBLE',
  boolean: 'BOOLEAN',
  timestamp: 'TIMESTAMP WITH TIME ZONE',
  strings: 'VARCHAR[]',
  map: 'MAP(VARCHAR, VARCHAR)',
  json: 'JSON',
}

/** The DuckDB type of each stored column, in order. */
export const sqlTypes = (table: Table): Record<string, string> =>
  Object.fromEntries(Object.entries(table.stored).map(([name, column]) => [name, TYPES[column.kind]]))

/** No rows, with all columns and their types: what a table without files is. */
const emptyQuery = (table: Table): string => `SELECT ${typedNulls(table, Object.keys(table.stored)).join(', ')} WHERE false`

function typedNulls(table: Table, names: readonly string[]): string[] {
  const types = sqlTypes(table)
  return names.map((name) => cast('NULL', types[name] ?? 'VARCHAR', name))
}

/**
 * A layer without files. Beside the columns there is `filename`, which identifies the delta. Every layer begins with this,
 * so that a column which none of its files has yet is null.
 */
export function emptyLayer(table: Table, layer: SqlLayer): string {
  // Of a removed row, only the key is known.
  const names = layer === 'removed' ? table.key : Object.keys(table.stored)
  return `SELECT ${[...typedNulls(table, names), cast('NULL', 'VARCHAR', 'filename')].join(', ')} WHERE false`
}

/** Partitions are not taken from the path, or `tenant=…` in it would become a column. */
export const READ_OPTIONS = 'union_by_name = true, hive_partitioning = false, filename = true'

/** Reads the files of one layer, which `list` names. */
export const layerQuery = (table: Table, layer: SqlLayer, list: string): string =>
  `${emptyLayer(table, layer)} UNION ALL BY NAME SELECT * FROM read_parquet(${list}, ${READ_OPTIONS})`

/** The rows of a table as they stand: one per key, whatever layers they come from. */
export function tableQuery(table: Table, relations: Relations): string {
  if (relations.versions !== undefined) return mergedQuery(table, relations.versions)
  const parts = layeredParts(table, relations)
  return parts.length === 0 ? emptyQuery(table) : parts.join('\nUNION ALL\n')
}

/**
 * The newest delta that mentions a key decides: its row, or no row. All other keys are in the base. An
 * outer join that keeps what finds no partner, rather than an anti-join: only through it does DuckDB pass a condition on
 * the key on to the other side.
 */
function layeredParts(table: Table, { base, l0, removed, history }: Relations): string[] {
  const columns = columnList(Object.keys(table.stored), 's')
  const newest = newestMarks(table, l0, removed)
  const parts: string[] = []
  if (base !== undefined && newest === undefined) parts.push(`SELECT ${columns} FROM ${base} AS s`)
  if (base !== undefined && newest !== undefined) {
    const key = quoteName(firstOfKey(table))
    parts.push(`SELECT ${columns} FROM ${base} AS s LEFT JOIN ${newest} AS n ON ${onKeys(table)} WHERE n.${key} IS NULL`)
  }
  if (l0 !== undefined) {
    parts.push(`SELECT ${columns} FROM ${l0} AS s JOIN ${newest} AS n ON ${onKeys(table)} AND ${mark(0)} = n.${MARK}`)
  }
  if (history !== undefined) parts.push(`SELECT ${columns} FROM ${history} AS s`)
  return parts
}

/** No column can have this name: those are snake_case. */
const MARK = quoteName('servo mark')

/** Orders the rows of deltas: by publish, which begins the file's name, and a removal after the rows of the same delta. */
const mark = (removal: 0 | 1): string => `split_part(parse_filename(s.filename), '-', 1)::BIGINT * 2 + ${removal}`

/** Per key that a delta mentions, the newest mention. */
function newestMarks(table: Table, l0: string | undefined, removed: string | undefined): string | undefined {
  const keys = columnList(table.key, 's')
  const mentions: string[] = []
  if (l0 !== undefined) mentions.push(`SELECT ${keys}, ${mark(0)} AS ${MARK} FROM ${l0} AS s`)
  if (removed !== undefined) mentions.push(`SELECT ${keys}, ${mark(1)} AS ${MARK} FROM ${removed} AS s`)
  if (mentions.length === 0) return undefined
  return `(SELECT ${columnList(table.key)}, max(${MARK}) AS ${MARK} FROM (${mentions.join(' UNION ALL ')}) GROUP BY ALL)`
}

/** Files by their literal paths, as a SQL list. DuckDB would read `*`, `?` and `[` in a folder's name as a pattern. */
export function fileList(paths: readonly string[]): string {
  return `[${paths.map((path) => quoteText(escapePattern(path))).join(', ')}]`
}

export const escapePattern = (path: string): string => path.replace(/[*?[]/g, '[$&]')
