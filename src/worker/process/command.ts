import { rmSync } from 'node:fs'
import path from 'node:path'
import type { AttemptOutput, AttemptResultInput } from '../../contract/dispatch.ts'
import type { LogEntry } from '../../contract/pipe.ts'
import type { ReportedCheck } from '../../contract/reported-check.ts'
import { type Failing, failureOf } from '../../sdk/attempt/failure-report.ts'
import { checkFailure } from '../../sdk/attempt/findings.ts'
import type { Written } from '../../sdk/declare/values.ts'
import { errorOfProgram } from '../../sdk/described-error.ts'
import { lineReader } from '../lines.ts'
import { makeScratchFolder } from '../scratch-folder.ts'
import { followFile } from './growing-file.ts'
import { type PipesContext, PipesReport, pipesEnvironment } from './pipes.ts'
import { type Program, runProgram } from './program.ts'

export interface CommandRun extends Program, Failing {
  readonly assetKey: string
  /** True: the program uses Dagster Pipes. Undefined: it may. False: it gets no Pipes environment. */
  readonly pipes: boolean | undefined
  readonly context: PipesContext
  log(entry: Omit<LogEntry, 'at'>): void
  /** Takes over the rows that the program wrote, and adds what their checks found. Absent if the program keeps its own data. */
  keepRows?(checks: ReportedCheck[]): Promise<Written>
}

/** Runs a program that makes an asset. Never throws: whatever happens is a result. */
export async function executeCommand(run: CommandRun): Promise<AttemptResultInput> {
  const report = new PipesReport(run.assetKey, run.log)
  let written: Written | undefined
  try {
    if (run.pipes === false) await runProgram(run)
    else await runWithPipes(run, report)
    written = await run.keepRows?.(report.checks)
    const failure = checkFailure(run.assetKey, report.checks)
    if (failure !== undefined) throw failure
    return { outcome: 'SUCCEEDED', output: outputOf(report, written) }
  } catch (error) {
    return failureOf(error, outputOf(report, written), run).result
  }
}

async function runWithPipes(run: CommandRun, report: PipesReport): Promise<void> {
  const folder = await makeScratchFolder('pipes')
  const file = path.join(folder, 'messages')
  const messages = followFile(
    file,
    lineReader((line) => report.read(line)),
  )
  try {
    const pipes = pipesEnvironment(run.context, { messages: file, contextFile: path.join(folder, 'context.json') })
    await runProgram({ ...run, env: { ...run.env, ...pipes } })
  } catch (error) {
    messages.end()
    // The program's own report of its end is better than its exit code.
    throw report.exception === undefined ? error : exceptionOf(report.exception)
  } finally {
    messages.end()
    rmSync(folder, { recursive: true, force: true })
  }
  if (report.exception !== undefined) throw exceptionOf(report.exception)
  if (run.pipes === true) remark(report, run.log)
}

/** A program that ends well without closing Pipes has done its work, but perhaps not reported all of it. */
function remark({ session }: PipesReport, log: CommandRun['log']): void {
  if (session === 'closed') return
  const text =
    session === 'open'
      ? 'The program ended without closing Pipes, so its last messages may be missing. Use `with open_dagster_pipes() as pipes:`.'
      : 'The program never opened Pipes, so it reported nothing. Call open_dagster_pipes() in it, or leave out `pipes: true`.'
  log({ stream: 'log', level: 'warn', text })
}

const exceptionOf = ({ message, traceback }: NonNullable<PipesReport['exception']>): Error => errorOfProgram(message, traceback)

function outputOf({ metadata, checks, dataVersion }: PipesReport, written: Written | undefined): AttemptOutput {
  const said = metadata['dagster/row_count']
  // What was stored is counted, whatever the program says.
  const rows = written?.rows ?? (typeof said === 'number' && Number.isSafeInteger(said) && said >= 0 ? said : undefined)
  const version = dataVersion ?? written?.dataVersion
  return {
    metadata,
    checks,
    ...(written && { path: written.path, bytes: written.bytes, sha256: written.sha256 }),
    ...(version === undefined ? {} : { data_version: version }),
    ...(rows === undefined ? {} : { rows }),
  }
}
