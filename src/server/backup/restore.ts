import { existsSync } from 'node:fs'
import { open, rename, rm } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { makeStateFolder } from '../../adapters/fs/state-folder.ts'
import type { CopyReport } from '../../engine/backup/copy-state.ts'
import { ServoError } from '../../lib/error.ts'
import { leadBriefly } from '../brief-leader.ts'
import { localComponents } from '../components.ts'
import { alone, copyAll } from './backup.ts'
import { type BackupRecord, readRecord } from './backup-record.ts'

export interface RestoreOptions {
  /** The folder of the backup. */
  readonly dir: string
  readonly servoDir: string
  readonly user: string
  /** Checks the restored copy before it is put in place; throws if it is damaged. */
  readonly check: (dir: string, record: BackupRecord) => Promise<void>
}

/**
 * Restores a backup to where there is no state. It appears under its name when it is complete, checked, and its automation is paused:
 * the original may still be running, and its schedules must not run twice.
 */
export async function restore({ dir, servoDir, user, check }: RestoreOptions): Promise<BackupRecord & CopyReport> {
  const to = resolve(servoDir)
  refuseState(to)
  await completeRecord(dir)
  return await alone(resolve(dir), async () => {
    const record = await completeRecord(dir)
    const temp = join(dirname(to), `.${basename(to).replace(/^\./, '')}-restoring`)
    await rm(temp, { recursive: true, force: true })
    makeStateFolder(temp)
    try {
      const scope = { tenant_id: record.tenant_id, workspace_id: record.workspace_id }
      const report = await copyAll({ from: resolve(dir), to: temp, scope })
      await check(temp, record)
      await pauseAutomation(temp, scope, user, `restored from the backup of ${record.made_at}`)
      refuseState(to)
      await rename(temp, to)
      const parent = await open(dirname(to))
      await parent.sync().finally(() => parent.close())
      return { ...record, ...report }
    } catch (error) {
      await rm(temp, { recursive: true, force: true })
      throw error
    }
  })
}

async function pauseAutomation(
  dir: string,
  scope: Pick<BackupRecord, 'tenant_id' | 'workspace_id'>,
  user: string,
  reason: string,
) {
  const components = localComponents(dir, scope)
  const name = components.ulid()
  const held = await components.lease.claim({ name, term: 'brief' })
  if (!held.held) throw new ServoError('conflict', 'already_running', `process ${held.leader.pid} is using ${dir}`)
  await leadBriefly(components, held, name, ({ schedules }) => schedules.switchAutomation('paused', { reason }, user)).finally(
    () => held.release(),
  )
}

async function completeRecord(dir: string): Promise<BackupRecord> {
  const record = existsSync(dir) ? await readRecord(dir) : undefined
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
