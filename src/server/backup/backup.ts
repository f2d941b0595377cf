import { mkdir } from 'node:fs/promises'
import { relative, resolve } from 'node:path'
import { type CopyReport, copyState } from '../../engine/backup/copy-state.ts'
import type { Scope } from '../../engine/paths.ts'
import { ServoError } from '../../lib/error.ts'
import { toIso } from '../../lib/time.ts'
import type { Clock } from '../../ports/clock.ts'
import { copierOf, folderStore, leaseOf, secretsFile } from '../components.ts'
import { newRecord, readRecord, writeRecord } from './backup-record.ts'

export interface BackupOptions {
  readonly servoDir: string
  readonly scope: Scope
  /** The folder of the backup. */
  readonly dir: string
  readonly prune: boolean
  readonly clock: Clock
}

/** Backs up a workspace that may be in use. What the backup has already is not copied again. */
export async function backUp({ servoDir, scope, dir, prune, clock }: BackupOptions): Promise<CopyReport> {
  const to = resolve(dir)
  refuseWithin(resolve(servoDir), to)
  await readRecord(to)
  await mkdir(to, { recursive: true, mode: 0o700 })
  return await alone(to, async () => {
    const before = await readRecord(to)
    if (before !== undefined && (before.tenant_id !== scope.tenant_id || before.workspace_id !== scope.workspace_id)) {
      throw new ServoError(
        'conflict',
        'another_workspace',
        `${dir} holds a backup of ${before.tenant_id}/${before.workspace_id}`,
        {
          hint: 'Name another folder: each workspace has its own.',
        },
      )
    }
    if (before === undefined) await writeRecord(to, newRecord(scope))
    const report = await copyAll({ from: servoDir, to, scope, prune })
    const { manifest, segments, last_segment } = report
    await writeRecord(to, { ...newRecord(scope), made_at: toIso(clock.now()), manifest, segments, last_segment })
    return report
  })
}

interface CopyOptions {
  readonly from: string
  readonly to: string
  readonly scope: Scope
  readonly prune?: boolean
}

/** Copies a workspace of one folder to another, with the secrets of the folder. */
export async function copyAll({ from, to, scope, prune = false }: CopyOptions): Promise<CopyReport> {
  const files = copierOf(from, to)
  // Before the rest: without them, runs that were asked for by a key are not recognised.
  await files.copy(relative(from, secretsFile(from)))
  return await copyState({ from: folderStore(from), to: folderStore(to), scope, files, prune })
}

/** One process at a time writes or reads a backup. */
export async function alone<T>(dir: string, work: () => Promise<T>): Promise<T> {
  const held = await leaseOf(dir).claim({ name: `backup-${process.pid}`, term: 'brief' })
  if (!held.held) {
    throw new ServoError('conflict', 'backup_in_use', `process ${held.leader.pid} is writing or reading this backup`, {
      hint: 'Wait until it has ended, then try again.',
    })
  }
  return await work().finally(() => held.release())
}

function refuseWithin(servoDir: string, dir: string): void {
  const down = relative(servoDir, dir)
  if (down.startsWith('..') || resolve(down) === down) return
  throw new ServoError('invalid', 'backup_within', `${dir} is inside the folder to back up`, {
    hint: 'Name a folder elsewhere, best on another disk.',
  })
}
