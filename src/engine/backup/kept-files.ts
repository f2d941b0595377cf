import { isServoError, ServoError } from '../../lib/error.ts'
import type { ObjectStore } from '../../ports/object-store.ts'
import { Paths, type Scope } from '../paths.ts'
import { type BackupRecord, keptFolders, newRecord, RECORD, readList, readRecord } from './backup-record.ts'
import { type BackedUpFile, type FileList, listAsItIs } from './file-list.ts'

/** What the next backup may keep of the one before. */
export interface KeptFiles {
  readonly files: readonly BackedUpFile[]
  /** The paths of its ledger. */
  readonly ledger: readonly string[]
  /** The record or the list, if they are damaged. */
  readonly damaged: readonly string[]
}

/**
 * What the backup before has. If its record or its list is damaged, everything is compared with the original, and what nothing in the
 * original says the checksum of is kept as it is.
 */
export async function keptFrom(store: ObjectStore, scope: Scope): Promise<KeptFiles> {
  const paths = new Paths(scope)
  const folders = [paths.ledger, paths.archives]
  const { list, damaged } = await listBefore(store, scope)
  if (list !== undefined) {
    const ledger = list.files.flatMap(({ path }) => (folders.some((folder) => path.startsWith(folder)) ? path : []))
    return { files: list.files, ledger, damaged }
  }
  const ledger: string[] = []
  for (const folder of folders) for await (const { path } of store.list(folder)) ledger.push(path)
  return { files: byFirstNames((await listAsItIs(store, keptFolders(paths))).files), ledger, damaged }
}

/** The list is undefined if there is none to go by. */
async function listBefore(
  store: ObjectStore,
  scope: Scope,
): Promise<{ readonly list?: FileList; readonly damaged: readonly string[] }> {
  let record: BackupRecord
  try {
    record = (await readRecord(store)) ?? newRecord(scope)
  } catch (error) {
    if (!isServoError(error, 'corrupt') || !(await hasLedger(store, scope))) throw error
    return { damaged: [RECORD] }
  }
  refuseOther(record, scope)
  if (record.made_at !== null && record.list === undefined) return { damaged: [] }
  try {
    return { list: await readList(store, record), damaged: [] }
  } catch (error) {
    if (!isServoError(error, 'corrupt')) throw error
    return { damaged: [record.list?.path ?? RECORD] }
  }
}

function refuseOther({ tenant_id, workspace_id }: BackupRecord, scope: Scope): void {
  if (tenant_id === scope.tenant_id && workspace_id === scope.workspace_id) return
  throw new ServoError('conflict', 'another_workspace', `the folder holds a backup of ${tenant_id}/${workspace_id}`, {
    hint: 'Name another folder: each workspace has its own.',
  })
}

/** Without a record, only its ledger tells whose backup it is. */
async function hasLedger(store: ObjectStore, scope: Scope): Promise<boolean> {
  const { ledger, archives } = new Paths(scope)
  for (const folder of [ledger, archives]) for await (const _ of store.list(folder)) return true
  return false
}

/** A file that had another content in the backup before lies under a second name, with its checksum. Of two contents, a log had the longer one last. */
function byFirstNames(files: readonly BackedUpFile[]): BackedUpFile[] {
  const named = files.map((file): BackedUpFile => {
    const [, path, checksum] = /^(.+)\.([0-9a-f]{16})$/.exec(file.path) ?? []
    return path !== undefined && file.sha256.startsWith(checksum ?? '') ? { ...file, path, at: file.path } : file
  })
  return named.sort((a, b) => a.bytes - b.bytes)
}
