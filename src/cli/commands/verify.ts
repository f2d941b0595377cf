import { orchestration } from '../../domain/index.ts'
import { verify } from '../../engine/check/verify.ts'
import type { WorkspaceFlags } from '../flags.ts'
import { openWorkspace } from '../open-workspace.ts'
import { colours, print, printable, printJson } from '../output.ts'
import { withScratch } from '../scratch.ts'

export async function verifyCommand(folder: string | undefined, flags: WorkspaceFlags & { quick?: boolean }): Promise<void> {
  const { store, scope } = await openWorkspace(folder, flags)
  const report = await withScratch((scratch) =>
    verify({ store, scope, registry: orchestration, scratch, quick: flags.quick ?? false }),
  )
  if (!report.ok) process.exitCode = 1
  if (flags.json) return printJson(report)

  for (const { path, message } of report.problems)
    print(`${colours.red('damaged')}  ${printable(path)}\n         ${printable(message)}`)
  const what = `${report.segments} segments with ${report.events} events, ${report.files} files, manifest ${report.manifest}`
  if (report.ok)
    print(`${colours.green('ok')}       ${what}${report.replayed ? '; the tables match the ledger' : '; not replayed'}`)
  else print(`${colours.red('not ok')}   ${report.problems.length} problems in ${what}`)
  if (report.relaid.length > 0)
    print(`         ${report.relaid.length} files were written by another version of Servo; their rows are the same`)
  if (report.unfolded.length > 0)
    print(`         ${report.unfolded.length === 1 ? '1 segment is' : `${report.unfolded.length} segments are`} not folded yet`)
  if (report.parked > 0) print(`         ${report.parked} events wait for others (see the table parked_events)`)
}
