import type { ObjectStore } from '../../ports/object-store.ts'
import { isSameContent } from '../files/content.ts'
import type { Damage } from '../ledger/read-segment.ts'
import { Paths } from '../paths.ts'
import { type BackupRecord, readList } from './backup-record.ts'
import type { FileCopier } from './backup-target.ts'
import { placeInBackup } from './file-list.ts'
import { showManifest } from './show-manifest.ts'

export interface CopyBackOptions {
  /** The backup. It is only read. */
  readonly from: ObjectStore
  readonly to: ObjectStore
  readonly files: FileCopier
  readonly record: BackupRecord
}

export interface CopiedBack {
  readonly copied: { readonly files: number; readonly bytes: number }
  /** Files that the backup does not have, or not as they were. They are not in the copy. */
  readonly problems: readonly Damage[]
}

/** Copies exactly what a record leads to, each file only if it is what the record says. */
export async function copyBack({ from, to, files, record }: CopyBackOptions): Promise<CopiedBack> {
  const { files: listed, lost } = await readList(from, record)
  const copied = { files: 0, bytes: 0 }
  const problems = [...lost]
  for (const file of listed) {
    const { path } = file
    const read = await files.copy(placeInBackup(file), async (content) => (isSameContent(content, file) ? path : undefined))
    if (read !== undefined && isSameContent(read, file)) {
      copied.files += 1
      copied.bytes += file.bytes
      continue
    }
    const what =
      read === undefined
        ? 'is missing in the backup'
        : `is damaged in the backup: its SHA-256 is ${read.sha256} instead of ${file.sha256}`
    problems.push({ path, message: `${path} ${what}` })
  }
  await files.settle()
  await showManifest(to, new Paths(record), record.manifest)
  return { copied, problems }
}
