import type { AnyRow, Table } from '../../model/table.ts'

/** Rows on their way from memory to history: by table, then by the id of the run or backfill that they belong to. */
export type SealedRows = Map<Table, Map<string, readonly AnyRow[]>>
