import { orchestration } from '../../domain/index.ts'
import { type RebuildReport, rebuild } from '../../engine/check/rebuild.ts'
import { ServoError } from '../../lib/error.ts'
import { localComponents } from '../../server/components.ts'
import type { WorkspaceFlags } from '../flags.ts'
import { openWorkspace } from '../open-workspace.ts'
import { colours, print, printable, printJson } from '../output.ts'
import { withScratch } from '../scratch.ts'

/**
 * Rebuilds the tables. It needs no confirmation: it writes derived files, and in the ledger it only puts segments back in their places.
 * Rows of segments that are lost go only if the flag says so.
 */
export async function rebuildCommand(
  folder: string | undefined,
  flags: WorkspaceFlags & { acceptLoss?: boolean },
): Promise<void> {
  const { dir, scope } = await openWorkspace(folder, flags)
  const components = localComponents(dir, scope)
  const { store, clock, ulid, lease } = components
  const held = await lease.claim({ name: ulid(), term: 'brief' })
  if (!held.held) {
    throw new ServoError('conflict', 'already_running', `process ${held.leader.pid} is running on this state`, {
      hint: 'Stop it, then rebuild.',
    })
  }
  const { acceptLoss } = flags
  const report = await withScratch((scratch) =>
    rebuild({ store, scope, registry: orchestration, clock, name: 'servo rebuild', scratch, lease: held, acceptLoss }),
  )
    .catch(async (error: unknown) => {
      // A deposed process may fail in any way, because another leader works on the same files.
      throw (await held.confirm().catch(() => true)) ? error : overtaken(error)
    })
    .finally(async () => {
      await components.settle?.()
      await held.release()
    })
  if (report.problems.length > 0 || report.left.length > 0) process.exitCode = 1
  if (flags.json) return printJson(report)

  for (const path of report.repaired) print(`${colours.yellow('repaired')} ${printable(path)}`)
  for (const { message } of report.problems) print(`${colours.red('lost')}     ${printable(message)}`)
  for (const { message } of report.left) print(`${colours.red('damaged')}  ${printable(message)}`)
  const what = `${report.segments} segments with ${report.events} events`
  if (report.left.length > 0) {
    print(`${colours.red('not rebuilt')} ${what}; manifest ${report.manifest} is unchanged`)
    print('         The tables have rows of segments that are lost, and folding the rest of the ledger anew would drop them.')
    print('         Restore what is lost from a backup, then rebuild again; or do without it: servo rebuild --accept-loss')
    return
  }
  print(`${colours.green('rebuilt')}  ${what} ${orderText(report)}; manifest ${report.manifest}`)
  if (report.problems.length > 0) print('         What is lost can only come from a backup: restore it, then rebuild again.')
}

function orderText({ anew_because }: RebuildReport): string {
  switch (anew_because) {
    case null:
      return 'in the recorded order'
    case 'order_lost':
      return 'by name, because the recorded order could not be read'
    case 'other_bytes':
      return 'by name, because another version of Servo wrote files that cannot be made again byte for byte'
    case 'loss_accepted':
      return 'by name, without those that are lost'
  }
}

const overtaken = (cause: unknown): ServoError =>
  new ServoError('unavailable', 'deposed', 'another process took over the project, so the rebuild stopped', {
    hint: 'Nothing is lost. Stop that process, then rebuild again.',
    cause,
  })
