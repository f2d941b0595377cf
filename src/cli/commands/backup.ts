import { orchestration } from '../../domain/index.ts'
import { type VerifyReport, verify } from '../../engine/check/verify.ts'
import type { Scope } from '../../engine/paths.ts'
import { ServoError } from '../../lib/error.ts'
import { counted } from '../../lib/text/counted.ts'
import { backUp } from '../../server/backup/backup.ts'
import { restore } from '../../server/backup/restore.ts'
import { folderStore, localComponents } from '../../server/components.ts'
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
  const report = await backUp({ servoDir, scope, dir, prune: flags.prune ?? false, clock })
  const checked = flags.verify === false ? undefined : await checkedCopy(dir, scope)
  if (flags.json) return printJson({ ...report, checked_files: checked?.files ?? null })
  const { copied, kept, removed } = report
  print(
    `${colours.green('backed up')}  ${copied.files} files (${copied.bytes} bytes) copied, ${kept} were there${removed > 0 ? `, ${removed} removed` : ''}`,
  )
  print(
    `           ${report.segments} segments, manifest ${report.manifest}${checked === undefined ? '; not checked' : '; all checksums are right'}`,
  )
}

/** Restores a backup into a project that has no state. */
export async function restoreCommand(dir: string, flags: ProjectFlags): Promise<void> {
  const servoDir = servoDirOf(findProject(flags))
  const check = async (copy: string, { tenant_id, workspace_id }: Scope): Promise<void> => {
    await checkedCopy(copy, { tenant_id, workspace_id })
  }
  const report = await restore({ dir, servoDir, user: currentUser(), check })
  if (flags.json) return printJson(report)
  print(
    `${colours.green('restored')}  ${report.segments} segments, manifest ${report.manifest}, of the backup of ${report.made_at}`,
  )
  print('          automation is paused. Resume it when nothing else runs these schedules: servo automation resume')
}

/** Checks the checksums of everything in a copy. */
async function checkedCopy(dir: string, scope: Scope): Promise<VerifyReport> {
  const report = await withScratch((scratch) =>
    verify({ store: folderStore(dir), scope, registry: orchestration, scratch, quick: true }),
  )
  if (report.ok) return report
  const first = report.problems[0]
  throw new ServoError(
    'corrupt',
    'damaged_copy',
    `${counted(report.problems.length, 'problem')} in the copy: ${printable(first?.message ?? '')}`,
    {
      hint: `servo verify ${dir} names all of them. Back up to a new folder, or mend the original first (servo verify).`,
      facts: { problems: report.problems },
    },
  )
}
