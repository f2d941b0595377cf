import { mkdir, readdir, realpath } from 'node:fs/promises'
import { basename, dirname, isAbsolute, join, relative, resolve } from 'node:path'
import { holdsSecrets } from '../../adapters/fs/secrets.ts'
import { orchestration } from '../../domain/index.ts'
import { type BackupReport, backUp } from '../../engine/backup/back-up.ts'
import { type BackupRecord, newRecord, RECORD, readList, readRecord, writeRecord } from '../../engine/backup/backup-record.ts'
import { recordedStore } from '../../engine/backup/recorded-store.ts'
import { unlessCorrupt } from '../../engine/check/corruption.ts'
import type { Scope } from '../../engine/paths.ts'
import { isServoError, ServoError } from '../../lib/error.ts'
import type { Clock } from '../../ports/clock.ts'
import type { HeldLease } from '../../ports/lease.ts'
import type { ObjectStore } from '../../ports/object-store.ts'
import { copierOf, folderStore, leaseOf, removeTemp, secretsFile } from '../components.ts'

export interface BackupOptions {
  readonly servoDir: string
  readonly scope: Scope
  /** The folder of the backup. */
  readonly dir: string
  readonly prune: boolean
  readonly clock: Clock
  /** Checks the new backup, before it takes the place of the one before; throws if it is damaged. */
  readonly check?: (backup: ObjectStore) => Promise<void>
}

/** Backs up a workspace that may be in use. What the backup has already is not copied again. */
export async function backUpFolder({ servoDir, dir, ...options }: BackupOptions): Promise<BackupReport> {
  const to = resolve(dir)
  await refuseWithin(resolve(servoDir), to)
  await refuseOtherFiles(to)
  // A newer version's backup is refused before anything is written; a record that is damaged will be made again.
  await unlessCorrupt(readRecord(folderStore(to)))
  await mkdir(to, { recursive: true, mode: 0o700 })
  return await alone(to, async (lease) => {
    const store = folderStore(to)
    // Left by backups that were killed: a value may be large.
    await removeTemp(to)
    // From now on the folder is known as one of backups, also if this one does not get to its end.
    if ((await store.size(RECORD)) === undefined) await writeRecord(store, newRecord(options.scope))
    return await backUp({
      ...options,
      from: folderStore(servoDir),
      to: store,
      lease,
      files: copierOf(servoDir, to),
      registry: orchestration,
      // Without them, runs that were asked for by a key are not recognised.
      besides: [
        { path: relative(servoDir, secretsFile(servoDir)), isSound: (bytes) => holdsSecrets(Buffer.from(bytes).toString()) },
      ],
    })
  })
}

/** The record of a folder; undefined if the folder is empty or does not exist. Refuses a folder with anything else in it. */
export async function recordIn(dir: string): Promise<BackupRecord | undefined> {
  const record = await readRecord(folderStore(dir))
  if (record === undefined) await refuseOtherFiles(dir)
  return record
}

async function refuseOtherFiles(dir: string): Promise<void> {
  if ((await folderStore(dir).size(RECORD)) !== undefined) return
  const names = await readdir(dir).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return []
    throw new ServoError('unavailable', 'folder_unreadable', `${dir} cannot be read: ${error.message}`, {
      hint: 'Name a folder of your own.',
      cause: error,
    })
  })
  // A first backup that was interrupted before it wrote its record.
  if (names.every((name) => name === '.tmp' || name === 'lease')) return
  throw new ServoError('conflict', 'not_a_backup', `${dir} holds other files, and no backup`, {
    hint: 'Name a new or empty folder, or one that servo backup made.',
  })
}

/** What a restore would take from a folder; undefined if the folder is no backup, such as the state of a project. */
export async function backupIn(dir: string): Promise<ObjectStore | undefined> {
  const store = folderStore(dir)
  if ((await store.size(RECORD)) === undefined) return undefined
  const record = await readRecord(store)
  return record?.made_at == null ? undefined : recordedStore(store, (await readList(store, record)).files)
}

/** One process at a time writes a backup. */
async function alone<T>(dir: string, work: (lease: HeldLease) => Promise<T>): Promise<T> {
  const held = await leaseOf(dir).claim({ name: `backup-${process.pid}`, term: 'brief' })
  if (!held.held) {
    throw new ServoError('conflict', 'backup_in_use', `process ${held.leader.pid} is writing this backup`, {
      hint: 'Wait until it has ended, then try again.',
    })
  }
  try {
    return await work(held)
  } catch (error) {
    throw isServoError(error) && error.code === 'deposed' ? takenOver(dir, error) : error
  } finally {
    await held.release()
  }
}

/** The other process cannot tell one that is stopped from one that has died on another machine. */
const takenOver = (dir: string, cause: unknown): ServoError =>
  new ServoError(
    'conflict',
    'backup_taken_over',
    `another process took over the backup in ${dir}, because this one did not answer`,
    {
      hint: 'The backup that it makes counts. Run servo backup again for what is newer.',
      cause,
    },
  )

async function refuseWithin(servoDir: string, dir: string): Promise<void> {
  const down = relative(await realPathOf(servoDir), await realPathOf(dir))
  if (down.startsWith('..') || isAbsolute(down)) return
  throw new ServoError('invalid', 'backup_within', `${dir} is inside the folder to back up`, {
    hint: 'Name a folder elsewhere, best on another disk.',
  })
}

/** Where a path leads, links followed; what does not exist yet is below a folder that does. */
async function realPathOf(path: string): Promise<string> {
  try {
    return await realpath(path)
  } catch {
    const parent = dirname(path)
    return parent === path ? path : join(await realPathOf(parent), basename(path))
  }
}
