import { orchestration } from '../../domain/index.ts'
import { type VerifyReport, verify } from '../../engine/check/verify.ts'
import { Paths } from '../../engine/paths.ts'
import { counted } from '../../lib/text/counted.ts'
import { backupIn } from '../../server/backup/backup.ts'
import { localComponents } from '../../server/components.ts'
import type { WorkspaceFlags } from '../flags.ts'
import { openWorkspace } from '../open-workspace.ts'
import { colours, print, printable, printJson } from '../output.ts'
import { withScratch } from '../scratch.ts'

/** Segments that are not folded yet are named, up to so many: a server that runs has few, and a state without manifests has them all. */
const SHOWN_UNFOLDED = 10

export async function verifyCommand(
  folder: string | undefined,
  flags: WorkspaceFlags & { quick?: boolean; data?: boolean },
): Promise<void> {
  const { dir, store: folderStore, scope } = await openWorkspace(folder, flags)
  // Of a backup that was interrupted, a restore takes nothing.
  const store = (await backupIn(dir)) ?? folderStore
  const { lease } = localComponents(dir, scope)
  const { quick = false, data = false } = flags
  const report = await withScratch((scratch) =>
    verify({ store, scope, registry: orchestration, scratch, quick, data, kept: () => lease.kept() }),
  )
  if (!report.ok) process.exitCode = 1
  if (flags.json) return printJson(report)

  for (const { message } of report.problems) print(`${colours.red('damaged')}  ${printable(message)}`)
  const paths = new Paths(scope)
  for (const ulid of report.unfolded.slice(0, SHOWN_UNFOLDED))
    print(`${colours.yellow('unfolded')} ${paths.segment(ulid)} is not in the tables yet`)
  const more = report.unfolded.length - SHOWN_UNFOLDED
  if (more > 0) print(`         and ${more} more ${more === 1 ? 'segment that is' : 'segments that are'} not in the tables yet`)
  const what = `${counted(report.segments, 'segment')} with ${counted(report.events, 'event')}, ${counted(report.files, 'file')}, manifest ${report.manifest}`
  if (report.ok)
    print(`${colours.green('ok')}       ${what}${report.replayed ? '; the tables match the ledger' : '; not replayed'}`)
  else print(`${colours.red('not ok')}   ${counted(report.problems.length, 'problem')} in ${what}`)
  if (report.relaid.length > 0)
    print(
      `         ${counted(report.relaid.length, 'file was', 'files were')} written by another version of Servo, with the same rows`,
    )
  if (report.parked > 0)
    print(`         ${counted(report.parked, 'event waits', 'events wait')} for others (see the table parked_events)`)
  print(`         ${valuesText(report)}`)
}

function valuesText({ values }: VerifyReport): string {
  if (values === null) return 'stored values: not checked (--data checks them)'
  const unknown = values.not_checked > 0 ? `; not checked: ${values.not_checked}, recorded without a checksum` : ''
  const pending = values.not_deleted > 0 ? `, ${values.not_deleted} of them not deleted yet` : ''
  const removed = values.removed > 0 ? `; removed on request or by a rule: ${values.removed}${pending}` : ''
  const hidden = values.missing_or_removed
  const missing = hidden > 0 ? `; missing, or removed by a part of the ledger that cannot be read: ${hidden}` : ''
  return `stored values: ${values.checked} match${unknown}${removed}${missing}`
}
