import type { Table } from '../../model/table.ts'
import type { SortedFileRef } from '../files/file-ref.ts'
import { Paths } from '../paths.ts'
import { mergeSortedFiles } from '../sorted/merge-files.ts'
import type { DraftInput } from './draft-input.ts'
import type { FileSet } from './file-set.ts'
import { retentionCutoff } from './retention.ts'

/** Sorted files of one level that are merged into one of the next. */
export const FILES_PER_LEVEL = 8

/** The sorted files of a table after each full level was merged into one file of the next. */
export async function mergeLevels(
  input: DraftInput,
  files: FileSet,
  table: Table,
  sorted: readonly SortedFileRef[],
): Promise<readonly SortedFileRef[]> {
  const { store, scope, manifest, epoch, retention, nowMs } = input
  const publish = manifest.publish + 1
  const paths = new Paths(scope)
  const keep = retentionCutoff(table, retention, nowMs)
  let levels = sorted
  for (let level = 0; ; level++) {
    const full = levels.filter((file) => file.level === level)
    if (full.length < FILES_PER_LEVEL) return levels
    const merged = await mergeSortedFiles(files.over(store), table, scope, full, [], keep === undefined ? {} : { keep })
    const rest = levels.filter((file) => file.level !== level)
    for (const { path } of full) files.discard(path)
    // Files of lower levels are newer, so the merged file goes before them and after those of higher levels.
    const above = rest.filter((file) => file.level > level)
    const below = rest.filter((file) => file.level < level)
    levels =
      merged.rows === 0
        ? rest
        : [
            ...above,
            files.addSortedFile(paths.sortedFile(table.name, publish, epoch, level + 1), merged.bytes, merged.rows, level + 1),
            ...below,
          ]
  }
}
