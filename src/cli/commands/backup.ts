import { orchestration } from '../../domain/index.ts'
import { verify } from '../../engine/check/verify.ts'
import type { Scope } from '../../engine/paths.ts'
import { ServoError } from '../../lib/error.ts'
import { counted } from '../../lib/text/counted.ts'
import type { ObjectStore } from '../../ports/object-store.ts'
import { backUpFolder } from '../../server/backup/backup.ts'
import { restore } from '../../server/backup/restore.ts'
import { localComponents } from '../../server/components.ts'
import type { WorkspaceFlags } from '../flags.ts'
import { openWorkspace } from '../open-workspace.ts'
import { colours, print, printable, printJson } from '../output.ts'
import { currentUser, findProject, type ProjectFlags, servoDirOf } from '../project.ts'
import { withScratch } from '../scratch.ts'

export interface BackupFlags extends WorkspaceFlags {
  prune?: boolean
  verify?: boolean
}

/** Backs up the project, whether a server runs or not, and checks every file of the backup. */
export async function backupCommand(dir: string, flags: BackupFlags): Promise<void> {
  const { dir: servoDir, scope } = await openWorkspace(undefined, flags)
  const { clock } = localComponents(servoDir, scope)
  const hint = `Damage that servo verify finds in the project is mended there first. Otherwise back up to a new folder: ${dir} still has the backup before.`
  const check = (backup: ObjectStore): Promise<void> => checkCopy(backup, scope, hint)
  const report = await backUpFolder({
    servoDir,
    scope,
    dir,
    prune: flags.prune ?? false,
    clock,
    ...(flags.verify !== false && { check }),
  })
  const { copied, kept, removed, problems, mended, checked_files } = report
  if (problems.length > 0) process.exitCode = 1
  if (flags.json) return printJson(report)
  for (const { message } of problems) print(`${colours.red('damaged')}    ${printable(message)}`)
  for (const path of mended) print(`${colours.yellow('mended')}     ${printable(path)} was damaged in the backup`)
  print(
    `${colours.green('backed up')}  ${copied.files} files (${copied.bytes} bytes) copied, ${kept} were there${removed > 0 ? `, ${removed} removed` : ''}`,
  )
  const checked = checked_files === null ? 'not checked' : 'all checksums are right'
  print(`           ${report.segments} segments, manifest ${report.manifest}; ${checked}`)
}

/** Restores a backup into a project that has no state. */
export async function restoreCommand(dir: string, flags: ProjectFlags): Promise<void> {
  const servoDir = servoDirOf(findProject(flags))
  const hint = `servo verify ${dir} names all of them. The next servo backup to the folder mends what the project still has.`
  const check = (copy: ObjectStore, scope: Scope): Promise<void> => checkCopy(copy, scope, hint)
  const report = await restore({ dir, servoDir, user: currentUser(), check })
  const { problems } = report
  if (problems.length > 0) process.exitCode = 1
  if (flags.json) return printJson(report)
  for (const { message } of problems) print(`${colours.red('lost')}      ${printable(message)}`)
  print(
    `${colours.green('restored')}  ${report.segments} segments, manifest ${report.manifest}, of the backup of ${report.made_at}${problems.length > 0 ? `, without ${counted(problems.length, 'file')}` : ''}`,
  )
  print('          automation is paused. Resume it when nothing else runs these schedules: servo automation resume')
}

/** Checks the checksums of the ledger and of all tables in a copy, and that nothing is missing. */
async function checkCopy(store: ObjectStore, { tenant_id, workspace_id }: Scope, hint: string): Promise<void> {
  const scope = { tenant_id, workspace_id }
  const report = await withScratch((scratch) => verify({ store, scope, registry: orchestration, scratch, quick: true }))
  if (report.ok) return
  const first = report.problems[0]
  throw new ServoError(
    'corrupt',
    'damaged_copy',
    `${counted(report.problems.length, 'problem')} in the copy: ${printable(first?.message ?? '')}`,
    { hint, facts: { problems: report.problems } },
  )
}
