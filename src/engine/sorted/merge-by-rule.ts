import type { MessagePort } from 'node:worker_threads'
import type { AnyRow } from '../../model/table.ts'
import type { SortedFileRef } from '../files/file-ref.ts'
import type { MergedTable } from '../fold/row-merge.ts'
import type { FileShape } from '../parquet/schema.ts'
import type { Scope } from '../paths.ts'
import type { RangeStore } from './index-footer.ts'
import { type MergedFile, mergeSortedFiles } from './merge-files.ts'

/** Rows are kept whose time in this column is `from` or later, or not known. */
export interface RetentionCutoff {
  readonly column: string
  readonly from: number
}

const isKept =
  ({ column, from }: RetentionCutoff) =>
  (row: AnyRow): boolean =>
    row[column] === null || row[column] >= from

/** Sorted files of a cold table that become one, as plain data for another thread. */
export interface SortedFilesToMerge {
  readonly table: FileShape & MergedTable
  readonly scope: Scope
  readonly sorted: readonly SortedFileRef[]
  /** Of all files together. */
  readonly rows: number
  readonly keep?: RetentionCutoff
}

export async function mergeByRule({ table, scope, sorted, keep }: SortedFilesToMerge, store: RangeStore): Promise<MergedFile> {
  return await mergeSortedFiles(store, table, scope, sorted, [], keep === undefined ? {} : { keep: isKept(keep) })
}

/*
 * A thread has no store. It asks for ranges of files through a port, so that memory holds some row groups and not whole files: a table may
 * have millions of rows.
 */
interface AskedRange {
  readonly id: number
  readonly range: Parameters<RangeStore['getRange']>
}

interface FoundRange {
  readonly id: number
  readonly found: { readonly bytes: Uint8Array | undefined } | 'failed'
}

/** Answers a thread that reads from this store. */
export function serveRanges(store: RangeStore, port: MessagePort): void {
  port.on('message', async ({ id, range }: AskedRange) => {
    try {
      const bytes = await store.getRange(...range)
      // A copy, because the bytes may be part of a buffer that others read, and all of that would be sent.
      const own = bytes === undefined ? undefined : new Uint8Array(bytes)
      port.postMessage({ id, found: { bytes: own } } satisfies FoundRange, own === undefined ? [] : [own.buffer])
    } catch {
      // The merge fails in the thread, and is done again here, where the caller gets the error.
      port.postMessage({ id, found: 'failed' } satisfies FoundRange)
    }
  })
}

/** The store at the other end of a port. */
export function storeBehind(port: MessagePort): RangeStore {
  const waiting = new Map<number, PromiseWithResolvers<Uint8Array | undefined>>()
  let last = 0
  port.on('message', ({ id, found }: FoundRange) => {
    const asked = waiting.get(id)
    waiting.delete(id)
    if (found === 'failed') asked?.reject(new Error('a range could not be read'))
    else asked?.resolve(found.bytes)
  })
  return {
    getRange(...range) {
      const answer = Promise.withResolvers<Uint8Array | undefined>()
      const id = ++last
      waiting.set(id, answer)
      port.postMessage({ id, range } satisfies AskedRange)
      return answer.promise
    },
  }
}
