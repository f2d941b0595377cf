import type { KeyPart } from '../../model/rows.ts'
import type { AnyRow, Table } from '../../model/table.ts'
import { type ColdTable, coldKey } from '../fold/added-rows.ts'
import { mergeRows } from '../fold/row-merge.ts'
import type { RunRef } from '../publish/manifest.ts'
import type { BlockPart } from './file-columns.ts'
import type { RunDescription } from './index-footer.ts'
import type { RunReader } from './sorted-file.ts'

/**
 * A cold table at one moment: files that hold most of it, and what is in memory. What all versions of a row come to is its
 * value.
 */
export interface ColdRowsToRead {
  readonly runs: readonly RunRef[]
  /** Grows whenever a row in memory is added or changed. */
  readonly changes: number
  /** Rows in memory: those that no run has yet, and perhaps some that one has. */
  recent(): Iterable<AnyRow>
  /** The columns of all rows of a run whose key begins so. */
  columns(ref: RunRef, first: KeyPart, isWanted?: (group: number) => boolean): AsyncIterable<BlockPart>
  /** What a run says of its row groups. */
  describe(ref: RunRef): Promise<RunDescription>
  /** Rows by key, each in the place of its key. */
  lookup(keys: readonly KeyPart[][]): Promise<(AnyRow | undefined)[]>
}

export interface ColdParts {
  readonly runs: readonly RunRef[]
  /** What has left memory for a file that no manifest names yet. */
  readonly inTransit?: ReadonlyMap<string, AnyRow> | undefined
  readonly memory: ColdTable
  readonly reader: RunReader
  /** What the runs hold. */
  readonly stored: (keys: readonly KeyPart[][]) => Promise<(AnyRow | undefined)[]>
}

export function coldRowsToRead(table: Table, { runs, inTransit, memory, reader, stored }: ColdParts): ColdRowsToRead {
  return {
    runs,
    changes: memory.changes,
    *recent() {
      if (inTransit !== undefined) yield* inTransit.values()
      yield* memory.rows()
    },
    columns: (ref, first, isWanted) => reader.columns(table, ref, first, isWanted),
    describe: (ref) => reader.describe(table, ref),
    async lookup(keys) {
      const rows = await stored(keys)
      return keys.map((key, i) => {
        const text = coldKey(key)
        const [older, moving] = [rows[i], inTransit?.get(text)]
        return memory.over(text, older && moving ? mergeRows(table, older, moving) : (older ?? moving))
      })
    },
  }
}
