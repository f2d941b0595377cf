import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { open, readdir, rename, rm, rmdir } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { makeStateFolder } from '../../adapters/fs/state-folder.ts'
import { type BackupRecord, readRecord } from '../../engine/backup/backup-record.ts'
import { type CopiedBack, copyBack } from '../../engine/backup/copy-back.ts'
import { leads } from '../../engine/ledger/leading.ts'
import type { Scope } from '../../engine/paths.ts'
import { ServoError } from '../../lib/error.ts'
import type { HeldLease } from '../../ports/lease.ts'
import type { ObjectStore } from '../../ports/object-store.ts'
import { leadBriefly } from '../brief-leader.ts'
import { copierOf, folderStore, leaseOf, localComponents } from '../components.ts'
import { recordIn } from './backup.ts'

export interface RestoreOptions {
  /** The folder of the backup. */
  readonly dir: string
  readonly servoDir: string
  readonly user: string
  /** Checks the restored copy before it is put in place; throws if it is damaged. */
  readonly check: (copy: ObjectStore, scope: Scope) => Promise<void>
}

/**
 * Restores a backup to where there is no state. It appears under its name when it is complete, checked, and its automation is paused:
 * the original may still be running, and its schedules must not run twice. Values that the backup has lost are left out and named.
 * Nothing is written to the backup: it may be a snapshot that cannot be written to.
 */
export async function restore({ dir, servoDir, user, check }: RestoreOptions): Promise<BackupRecord & CopiedBack> {
  const to = resolve(servoDir)
  refuseState(to)
  const record = await completeRecord(dir)
  return await alone(to, async (temp, lease) => {
    const scope = { tenant_id: record.tenant_id, workspace_id: record.workspace_id }
    const back = await copiedBack(dir, temp, record)
    await check(folderStore(temp), scope)
    await pauseAutomation(temp, scope, user, `restored from the backup of ${record.made_at}`)
    if (!(await leads(lease))) throw takenOver(to)
    refuseState(to)
    // If there is state by now, in spite of all, this fails: a folder takes the place of an empty one only.
    await rename(temp, to)
    const parent = await open(dirname(to))
    await parent.sync().finally(() => parent.close())
    return { ...record, ...back }
  })
}

/**
 * One process at a time restores to a place, in a folder beside it. One that was stopped for long is taken over, and may wake up: each has
 * a folder of its own in there.
 */
async function alone<T>(to: string, work: (temp: string, lease: HeldLease) => Promise<T>): Promise<T> {
  const place = join(dirname(to), `.${basename(to).replace(/^\./, '')}-restoring`)
  makeStateFolder(place)
  const held = await leaseOf(place).claim({ name: `restore-${process.pid}`, term: 'brief' })
  if (!held.held) {
    throw new ServoError('conflict', 'restore_in_progress', `process ${held.leader.pid} is restoring to ${to}`, {
      hint: 'Wait until it has ended.',
    })
  }
  const isOurs = (): Promise<boolean> => leads(held).catch(() => false)
  const temp = join(place, randomUUID())
  try {
    // Restores that were killed left the others.
    for (const name of await readdir(place)) {
      if (name !== 'lease' && name !== '.gitignore') await rm(join(place, name), { recursive: true, force: true })
    }
    makeStateFolder(temp)
    return await work(temp, held)
  } catch (error) {
    // Whatever failed: what was to be there may just have been removed.
    throw (await isOurs()) ? error : takenOver(to, error)
  } finally {
    const isPlaceOurs = await isOurs()
    await rm(isPlaceOurs ? place : temp, { recursive: true, force: true })
    // The other one may have removed it before we wrote to it again.
    if (!isPlaceOurs) await rmdir(place).catch(() => undefined)
    await held.release()
  }
}

const takenOver = (to: string, cause?: unknown): ServoError =>
  new ServoError(
    'conflict',
    'restore_taken_over',
    `another process took over the restore to ${to}, because this one did not answer`,
    {
      hint: 'What that one restores counts.',
      cause,
    },
  )

async function copiedBack(dir: string, to: string, record: BackupRecord): Promise<CopiedBack> {
  const back = await copyBack({ from: folderStore(dir), to: folderStore(to), files: copierOf(dir, to), record }).catch(
    async (error: unknown) => {
      throw (await isReplaced(dir, record)) ? replacedMeanwhile(dir, error) : error
    },
  )
  if (back.problems.length > 0 && (await isReplaced(dir, record))) throw replacedMeanwhile(dir)
  return back
}

/** A backup that was made meanwhile has removed what only the one before had. */
const isReplaced = async (dir: string, record: BackupRecord): Promise<boolean> =>
  (await readRecord(folderStore(dir)))?.made_at !== record.made_at

const replacedMeanwhile = (dir: string, cause?: unknown): ServoError =>
  new ServoError('conflict', 'backup_replaced', `another backup to ${dir} was completed meanwhile`, {
    hint: 'Restore again: the newer one is taken then.',
    cause,
  })

async function pauseAutomation(dir: string, scope: Scope, user: string, reason: string): Promise<void> {
  const components = localComponents(dir, scope)
  const name = components.ulid()
  const held = await components.lease.claim({ name, term: 'brief' })
  if (!held.held) throw new ServoError('conflict', 'already_running', `process ${held.leader.pid} is using ${dir}`)
  await leadBriefly(components, { lease: held, name }, ({ schedules }) =>
    schedules.switchAutomation('paused', { reason }, user),
  ).finally(() => held.release())
}

async function completeRecord(dir: string): Promise<BackupRecord> {
  const record = existsSync(dir) ? await recordIn(resolve(dir)) : undefined
  if (record === undefined)
    throw new ServoError('not_found', 'no_backup', `no backup in ${dir}`, {
      hint: 'Name the folder that servo backup wrote to.',
    })
  if (record.made_at !== null) return record
  throw new ServoError('conflict', 'backup_incomplete', `the backup in ${dir} was never completed`, {
    hint: 'Run servo backup again, with the same folder.',
  })
}

function refuseState(servoDir: string): void {
  if (!existsSync(servoDir)) return
  throw new ServoError('conflict', 'state_exists', `there is state in ${servoDir} already`, {
    hint: `Move it away first, for example: mv ${basename(servoDir)} ${basename(servoDir)}.old`,
  })
}
