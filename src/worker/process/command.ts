import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import type { AttemptResultInput } from '../../contract/dispatch.ts'
import type { LogEntry } from '../../contract/pipe.ts'
import { type Failing, failureOf } from '../../sdk/attempt/failure-report.ts'
import { checkFailure } from '../../sdk/attempt/findings.ts'
import { errorOfProgram } from '../../sdk/described-error.ts'
import { lineReader } from '../lines.ts'
import { followFile } from './growing-file.ts'
import { type PipesContext, PipesReport, pipesEnvironment } from './pipes.ts'
import { type Program, runProgram } from './program.ts'

export interface CommandRun extends Program, Failing {
  readonly assetKey: string
  /** True: the program uses Dagster Pipes. Undefined: it may. False: it gets no Pipes environment. */
  readonly pipes: boolean | undefined
  readonly context: PipesContext
  log(entry: Omit<LogEntry, 'at'>): void
}

/** Runs a program that makes an asset. Never throws: whatever happens is a result. */
export async function executeCommand(run: CommandRun): Promise<AttemptResultInput> {
  const report = new PipesReport(run.assetKey, run.log)
  try {
    if (run.pipes === false) await runProgram(run)
    else await runWithPipes(run, report)
    const failure = checkFailure(run.assetKey, report.checks)
    if (failure !== undefined) throw failure
    return { outcome: 'SUCCEEDED', output: outputOf(report) }
  } catch (error) {
    return failureOf(error, outputOf(report), run).result
  }
}

async function runWithPipes(run: CommandRun, report: PipesReport): Promise<void> {
  const folder = mkdtempSync(path.join(tmpdir(), 'servo-pipes-'))
  const file = path.join(folder, 'messages')
  const messages = followFile(
    file,
    lineReader((line) => report.read(line)),
  )
  try {
    await runProgram({ ...run, env: { ...run.env, ...pipesEnvironment(run.context, file) } })
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

function outputOf({ metadata, checks, dataVersion }: PipesReport): NonNullable<AttemptResultInput['output']> {
  const rows = metadata['dagster/row_count']
  return {
    metadata,
    checks,
    ...(dataVersion === undefined ? {} : { data_version: dataVersion }),
    ...(typeof rows === 'number' && Number.isSafeInteger(rows) && rows >= 0 ? { rows } : {}),
  }
}
