import type { RunsApi, WireRow } from '../../api/run-contract.ts'
import { ServoError } from '../../lib/error.ts'
import { colours, errorColours, print, printable, printJson } from '../output.ts'
import { currentUser, findProject, type ProjectFlags, runningServer } from '../project.ts'
import { printProblems } from '../show-problems.ts'
import { RunPrinter, shortId, summary } from '../show-run.ts'

export interface RunFlags extends ProjectFlags {
  wait?: boolean
  partition?: string[]
  key?: string
  label?: string[]
  priority?: string
  concurrency?: string
  quiet?: boolean
}

/** Asks the server for a run; without one, runs it here and stays until it is over. */
export async function runCommand(selection: string[], flags: RunFlags): Promise<void> {
  const projectDir = findProject(flags)
  const body = {
    selection,
    ...(flags.partition !== undefined && { partitions: flags.partition }),
    ...(flags.key !== undefined && { key: flags.key }),
    ...(flags.label !== undefined && { labels: labelsOf(flags.label) }),
    ...(flags.priority !== undefined && { priority: wholeNumber('--priority', flags.priority) }),
  }
  const server = await runningServer(projectDir)
  if (server === undefined) {
    await runHere(projectDir, flags, async (runs) => (await runs.request(body, currentUser())).run_id)
    return
  }
  const { run_id, created } = await server.request(body, currentUser())
  if (flags.wait) await watchRun(server, run_id, flags)
  else if (flags.json) printJson({ run_id, created })
  else
    print(
      `${created ? 'accepted' : 'the same request was made before:'} ${run_id}\n${colours.dim(`follow it: servo runs logs -f ${shortId(run_id)}`)}`,
    )
}

/** Follows a run of a server until it is over. Leaving does not stop it. */
export async function watchRun(server: RunsApi, runId: string, flags: RunFlags): Promise<void> {
  const leave = new AbortController()
  const onSignal = (): void => leave.abort()
  process.once('SIGINT', onSignal)
  try {
    const run = await follow(server, runId, flags, leave.signal)
    if (leave.signal.aborted && !flags.json)
      print(`\n${shortId(runId)} goes on; stop it with: servo runs cancel ${shortId(runId)}`)
    else report(run, flags)
  } finally {
    process.off('SIGINT', onSignal)
  }
}

/** No server runs this project: this process is one for as long as there is something to do. */
export async function runHere(projectDir: string, flags: RunFlags, ask: (runs: RunsApi) => Promise<string>): Promise<void> {
  const { LocalServer } = await import('../../server/local-server.ts')
  const stopped = Promise.withResolvers<never>()
  const { server, loaded } = await LocalServer.start({
    projectDir,
    port: 0,
    ...(flags.concurrency !== undefined && { concurrency: wholeNumber('--concurrency', flags.concurrency) }),
    onTrouble: (error) => process.stderr.write(`${errorColours.yellow('warning:')} ${printable(String(error))}\n`),
    onStopped: (error) => stopped.reject(error),
  })
  stopped.promise.catch(() => undefined)
  try {
    if (!loaded.ok) {
      printProblems(loaded.problems)
      process.exitCode = 2
      return
    }
    const runId = await ask(server.runs)
    const cancel = cancelOnSignal(server.runs, runId)
    const run = await Promise.race([follow(server.runs, runId, flags, new AbortController().signal), stopped.promise])
    cancel()
    report(run, flags)
    // Others may have joined in the meantime.
    await Promise.race([server.orchestrator.idle(), stopped.promise])
  } finally {
    await server.close()
  }
}

/** Ctrl-C cancels the run and waits for its end; a second one does not wait. */
function cancelOnSignal(runs: RunsApi, runId: string): () => void {
  let asked = false
  const onSignal = (): void => {
    if (asked) process.exit(130)
    asked = true
    process.stderr.write(`\n${errorColours.yellow('cancelling')} ${shortId(runId)}; press Ctrl-C again to leave at once\n`)
    runs.cancel(runId, currentUser(), 'interrupted at the terminal').catch(() => undefined)
  }
  process.on('SIGINT', onSignal)
  process.on('SIGTERM', onSignal)
  return () => {
    process.off('SIGINT', onSignal)
    process.off('SIGTERM', onSignal)
  }
}

async function follow(runs: RunsApi, runId: string, flags: RunFlags, signal: AbortSignal): Promise<WireRow | undefined> {
  const printer = new RunPrinter({ quiet: flags.quiet ?? false })
  let last: WireRow | undefined
  for await (const event of runs.follow(runId, signal)) {
    if (event.type === 'run' && last === undefined && !flags.json) print(`run ${colours.bold(shortId(runId))}`)
    if (event.type === 'run') last = event.run
    else if (!flags.json) printer.show(event)
  }
  return last
}

function report(run: WireRow | undefined, flags: RunFlags): void {
  if (run === undefined) throw new ServoError('unavailable', 'connection_lost', 'the server went away before the run was over')
  if (flags.json) printJson(run)
  else print(summary(run))
  if (run['state'] !== 'SUCCEEDED') process.exitCode = 1
}

function labelsOf(labels: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    labels.map((label) => {
      const at = label.indexOf('=')
      if (at > 0) return [label.slice(0, at), label.slice(at + 1)]
      throw new ServoError('invalid', 'bad_label', `--label ${label} has no value`, { hint: 'Write --label team=sales.' })
    }),
  )
}

export function wholeNumber(flag: string, text: string): number {
  const number = Number(text)
  if (Number.isInteger(number)) return number
  throw new ServoError('invalid', 'not_a_number', `${flag} ${text} is not a whole number`)
}
