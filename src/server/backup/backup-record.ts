import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { CopyReport } from '../../engine/backup/copy-state.ts'
import { checksummedJson, readChecksummed } from '../../engine/files/checksummed-json.ts'
import type { Scope } from '../../engine/paths.ts'
import { ServoError } from '../../lib/error.ts'
import { folderStore } from '../components.ts'

const RECORD = 'backup.json'
const FORMAT = 1

/** What a folder says of the backup in it. */
export interface BackupRecord extends Scope, Pick<CopyReport, 'manifest' | 'segments' | 'last_segment'> {
  readonly format: typeof FORMAT
  /** When the newest complete backup was made; null if there has been none. */
  readonly made_at: string | null
}

export const newRecord = (scope: Scope): BackupRecord => ({
  format: FORMAT,
  ...scope,
  made_at: null,
  manifest: 0,
  segments: 0,
  last_segment: null,
})

export async function writeRecord(dir: string, record: BackupRecord): Promise<void> {
  await folderStore(dir).put(RECORD, checksummedJson('backup', record))
}

/** The record of a folder; undefined if the folder is empty or does not exist. Refuses a folder with anything else in it. */
export async function readRecord(dir: string): Promise<BackupRecord | undefined> {
  const bytes = await folderStore(dir).get(RECORD)
  if (bytes === undefined) {
    const names = await readdir(dir).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return []
      throw new ServoError('unavailable', 'folder_unreadable', `${dir} cannot be read: ${error.message}`, {
        hint: 'Name a folder of your own.',
        cause: error,
      })
    })
    // A first backup that was interrupted before it wrote its record.
    if (names.every((name) => name === '.tmp' || name === 'lease')) return undefined
    throw new ServoError('conflict', 'not_a_backup', `${dir} holds other files, and no backup`, {
      hint: 'Name a new or empty folder, or one that servo backup made.',
    })
  }
  const record = readChecksummed<BackupRecord>('backup', bytes, join(dir, RECORD))
  if (record.format === FORMAT) return record
  throw new ServoError('corrupt', 'unknown_format', `${dir} has a backup of format ${String(record.format)}`, {
    hint: 'A newer version of Servo made it. Upgrade Servo.',
  })
}
