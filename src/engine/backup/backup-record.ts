import { isServoError, ServoError } from '../../lib/error.ts'
import { sha256 } from '../../lib/hash.ts'
import type { ObjectStore } from '../../ports/object-store.ts'
import { checksummedJson, readChecksummed } from '../files/checksummed-json.ts'
import type { FileContent } from '../files/content.ts'
import { newerFormat } from '../files/newer-format.ts'
import { Paths, type Scope } from '../paths.ts'
import { decodeList, encodeList, type FileList, listAsItIs } from './file-list.ts'

/** The file by which a folder is known as a backup. Whatever it does not lead to is no part of the backup. */
export const RECORD = 'backup.json'
/** Backups of format 1 have no list: everything in their folder belongs to them. */
const FORMAT = 2

/** What a folder says of the newest complete backup in it. */
export interface BackupRecord extends Scope {
  readonly format: 1 | typeof FORMAT
  /** When it was made; null if there has been none. */
  readonly made_at: string | null
  /** The number of its manifest; 0 if there is none. */
  readonly manifest: number
  readonly segments: number
  readonly last_segment: string | null
  /** The file that lists all others. */
  readonly list?: FileContent & { readonly path: string }
}

export const newRecord = (scope: Scope): BackupRecord => ({
  format: FORMAT,
  tenant_id: scope.tenant_id,
  workspace_id: scope.workspace_id,
  made_at: null,
  manifest: 0,
  segments: 0,
  last_segment: null,
})

/** The record of a backup; undefined if there is none. */
export async function readRecord(store: ObjectStore): Promise<BackupRecord | undefined> {
  const bytes = await store.get(RECORD)
  if (bytes === undefined) return undefined
  const record = recordOf(bytes)
  if (record.format === 1 || record.format === FORMAT) return record
  throw newerFormat(RECORD, `the backup has format ${String(record.format)}, this version of Servo reads format ${FORMAT}`)
}

function recordOf(bytes: Uint8Array): BackupRecord {
  try {
    return readChecksummed<BackupRecord>('backup', bytes, RECORD)
  } catch (error) {
    if (!isServoError(error, 'corrupt')) throw error
    throw new ServoError('corrupt', 'damaged_record', error.message, {
      hint: MADE_AGAIN,
      facts: { path: RECORD },
      cause: error,
    })
  }
}

const MADE_AGAIN =
  'The next servo backup to this folder makes it again. Without the project, copy the folder to .servo yourself and run servo verify --data.'

export const writeRecord = async (store: ObjectStore, record: BackupRecord): Promise<void> =>
  await store.put(RECORD, checksummedJson('backup', record))

/** Where lists are, each under its checksum: none is ever replaced by another. */
export const LISTS = 'lists/'

/** Writes the list of a backup. It counts from the moment at which a record names it. */
export async function writeList(store: ObjectStore, list: FileList): Promise<NonNullable<BackupRecord['list']>> {
  const bytes = await encodeList(list)
  const content = { bytes: bytes.length, sha256: sha256(bytes) }
  const path = `${LISTS}${content.sha256.slice(0, 16)}.jsonl.zst`
  // Not created: what is there under this name may be damaged.
  await store.put(path, bytes)
  return { path, ...content }
}

/** What a restore of this record takes. Throws `corrupt` if the list is damaged or gone. */
export async function readList(store: ObjectStore, record: BackupRecord): Promise<FileList> {
  if (record.made_at === null) return { files: [], lost: [] }
  if (record.list === undefined) return await listAsItIs(store, foldersOf(record))
  const { path, sha256: expected } = record.list
  const bytes = await store.get(path)
  if (bytes !== undefined && sha256(bytes) === expected) return await decodeList(bytes)
  const what = bytes === undefined ? 'is missing' : 'does not match its checksum'
  throw new ServoError('corrupt', 'damaged_list', `${path}, the list of all files of the backup, ${what}`, {
    hint: MADE_AGAIN,
    facts: { path },
  })
}

/** The folders of a backup, that of the secrets included. */
const foldersOf = (record: BackupRecord): string[] => [new Paths(record).root, 'local/']

/** Folders with files that no event and no manifest names. */
export const keptFolders = ({ root }: Paths): string[] => [`${root}logs/`, `${root}secrets/`]
