import { existsSync } from 'node:fs'
import { open, rename, rm } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { makeStateFolder } from '../../adapters/fs/state-folder.ts'
import { type BackupRecord, readRecord } from '../../engine/backup/backup-record.ts'
import { type CopiedBack, copyBack } from '../../engine/backup/copy-back.ts'
import type { Scope } from '../../engine/paths.ts'
import { ServoError } from '../../lib/error.ts'
import type { ObjectStore } from '../../ports/object-store.ts'
import { leadBriefly } from '../brief-leader.ts'
import { copierOf, folderStore, localComponents } from '../components.ts'
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
  const temp = join(dirname(to), `.${basename(to).replace(/^\./, '')}-restoring`)
  await rm(temp, { recursive: true, force: true })
  makeStateFolder(temp)
  try {
    const scope = { tenant_id: record.tenant_id, workspace_id: record.workspace_id }
    const back = await copiedBack(dir, temp, record)
    await check(folderStore(temp), scope)
    await pauseAutomation(temp, scope, user, `restored from the backup of ${record.made_at}`)
    refuseState(to)
    await rename(temp, to)
    const parent = await open(dirname(to))
    await parent.sync().finally(() => parent.close())
    return { ...record, ...back }
  } catch (error) {
    await rm(temp, { recursive: true, force: true })
    throw error
  }
}

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
