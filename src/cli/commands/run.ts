import type { RunsApi, WireRow } from '../../api/run-contract.ts'
import { ServoError } from '../../lib/error.ts'
import { concurrencyFlag, labelsFlag, wholeNumber } from '../flags.ts'
import { followRun } from '../follow-run.ts'
import { colours, errorColours, print, printJson, warn } from '../output.ts'
import { currentTrace, currentUser, findProject, type ProjectFlags, runningServer } from '../project.ts'
import { printProblems } from '../show-problems.ts'
import { RunPrinter, shortId, summary, tasksText } from '../show-run.ts'

export interface WatchFlags extends ProjectFlags {
  concurrency?: string
  quiet?: boolean
}

export interface RunFlags extends WatchFlags {
  wait?: boolean
  partition?: string[]
  key?: string
  label?: string[]
  priority?: string
}

/** Asks the server for a run; without one, runs it here and stays until it is over. */
export async function runCommand(selection: string[], flags: RunFlags): Promise<void> {
  const projectDir = findProject(flags)
  const body = {
    selection,
    ...(flags.partition !== undefined && { partitions: flags.partition }),
    ...(flags.key !== undefined && { key: flags.key }),
    ...(flags.label !== undefined && { labels: labelsFlag(flags.label) }),
    ...(flags.priority !== undefined && { priority: wholeNumber('--priority', flags.priority, { min: -1_000, max: 1_000 }) }),
  }
  const server = await runningServer(projectDir)
  if (server === undefined) {
    await runHere(projectDir, flags, async (runs) => (await runs.request(body, currentUser(), currentTrace())).run_id)
    return
  }
  const accepted = await server.request(body, currentUser(), currentTrace())
  if (flags.wait) await watchRun(server, accepted.run_id, flags)
  else if (flags.json) printJson(accepted)
  else printAccepted(accepted)
}

export function printAccepted({ run_id, created }: { run_id: string; created: boolean }): void {
  print(`${created ? 'accepted' : 'the same request was made before:'}  ${run_id}`)
  print(colours.dim(`follow it: servo runs logs -f ${shortId(run_id)}`))
}

/** Follows a run of a server until it is over. Leaving does not stop it. */
export async function watchRun(server: RunsApi, runId: string, flags: WatchFlags): Promise<void> {
  const leave = new AbortController()
  const onSignal = (): void => leave.abort()
  process.once('SIGINT', onSignal)
  try {
    const run = await follow(server, runId, flags, leave.signal)
    if (!leave.signal.aborted) report(run, flags)
    else {
      process.exitCode = 130
      if (flags.json) printJson(run)
      else print(`\n${shortId(runId)} goes on; stop it with: servo runs cancel ${shortId(runId)}`)
    }
  } finally {
    process.off('SIGINT', onSignal)
  }
}

/** No server runs this project: this process is one for as long as there is something to do. */
export async function runHere(projectDir: string, flags: WatchFlags, ask: (runs: RunsApi) => Promise<string>): Promise<void> {
  const { LocalServer } = await import('../../server/local-server.ts')
  const stopped = Promise.withResolvers<never>()
  const { server, loaded } = await LocalServer.start({
    projectDir,
    port: 0,
    ...concurrencyFlag(flags.concurrency),
    onTrouble: warn,
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

async function follow(runs: RunsApi, runId: string, flags: WatchFlags, signal: AbortSignal): Promise<WireRow | undefined> {
  const printer = new RunPrinter()
  const isQuiet = flags.quiet || flags.json
  let last: WireRow | undefined
  for await (const event of isQuiet ? runs.follow(runId, signal) : followRun(runs, runId, signal)) {
    if (event.type !== 'run') {
      if (!flags.json && (event.type === 'task' || !isQuiet)) printer.show(event)
      continue
    }
    if (last === undefined && !flags.json)
      print(`${colours.bold(shortId(runId))}  ${tasksText(Number(event.run['tasks_total']))}`)
    last = event.run
  }
  return last
}

function report(run: WireRow | undefined, flags: WatchFlags): void {
  if (run === undefined || run['finished_at'] === null) {
    throw new ServoError('unavailable', 'connection_lost', 'the server went away before the run was over', {
      hint: 'The run goes on when the project is started again: servo dev',
    })
  }
  if (flags.json) printJson(run)
  else print(summary(run))
  if (run['state'] === 'SUCCEEDED') return
  process.exitCode = 1
  if (flags.json) return
  const id = shortId(run['run_id'])
  if (run['state'] === 'FAILED' && Number(run['tasks_failed']) > 0)
    print(colours.dim(`  what was printed: servo runs logs ${id}\n  run the rest:     servo runs rerun ${id}`))
}
