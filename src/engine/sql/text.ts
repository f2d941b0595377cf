import { quoteName } from '../../lib/sql/sql-text.ts'
import type { Table } from '../../model/table.ts'

export const cast = (expression: string, type: string, name: string): string => `${expression}::${type} AS ${quoteName(name)}`

/** `s."a", s."b"`, or without the alias. */
export const columnList = (names: readonly string[], alias?: string): string =>
  names.map((name) => (alias === undefined ? quoteName(name) : `${alias}.${quoteName(name)}`)).join(', ')

/** The rows of `s` and `n` that have the same key. */
export const onKeys = (table: Table): string =>
  table.key.map((name) => `s.${quoteName(name)} = n.${quoteName(name)}`).join(' AND ')
