import { runs } from '../../domain/runs/runs.table.ts'
import { ServoError } from '../../lib/error.ts'
import { toIso } from '../../lib/time.ts'
import type { Change } from '../../server/feed.ts'
import { LocalServer, type Reload } from '../../server/local-server.ts'
import { wireRow } from '../../server/wire.ts'
import { colours, errorColours, fail, print, printable } from '../output.ts'
import { currentUser, findProject, type ProjectFlags } from '../project.ts'
import { printProblems } from '../show-problems.ts'
import { firstLine, pad, painted, shortId, summary, took } from '../show-run.ts'
import { wholeNumber } from './run.ts'

export interface DevFlags extends ProjectFlags {
  port?: string
  concurrency?: string
  run?: string[]
}

const DEFAULT_PORT = 4400

/** Everything on this machine, until Ctrl-C. */
export async function devCommand(flags: DevFlags): Promise<void> {
  const projectDir = findProject(flags)
  const began = performance.now()
  const stopped = Promise.withResolvers<unknown>()
  const { server, loaded } = await startServer(projectDir, flags, stopped.resolve)
  const count = loaded.ok ? `${loaded.manifest.assets.length} assets` : errorColours.red('not loaded')
  const name = loaded.ok ? loaded.manifest.project : ''
  print(
    `${colours.bold(colours.green('servo dev'))}  ${colours.bold(printable(name))}  ${count}  ${server.url}  ${colours.dim(`ready in ${Math.round(performance.now() - began)} ms`)}`,
  )
  if (loaded.ok) print(colours.dim('  servo run "*" runs everything; saving a file loads it again; Ctrl-C stops'))
  else printProblems(loaded.problems)
  server.feed.listen(showChange)
  if (loaded.ok && flags.run !== undefined) await server.runs.request({ selection: flags.run }, currentUser()).catch(fail)

  const signal = await Promise.race([nextSignal(), stopped.promise])
  await server.close()
  if (typeof signal === 'string') print(colours.dim('\nstopped; what was running goes on at the next start'))
  else fail(signal)
}

async function startServer(projectDir: string, flags: DevFlags, onStopped: (error: unknown) => void) {
  const options = {
    projectDir,
    watch: true,
    ...(flags.concurrency !== undefined && { concurrency: wholeNumber('--concurrency', flags.concurrency) }),
    onLoaded: showReload,
    onTrouble: (error: unknown) => process.stderr.write(`${errorColours.yellow('warning:')} ${printable(String(error))}\n`),
    onStopped,
  }
  if (flags.port !== undefined)
    return await LocalServer.start({ ...options, port: wholeNumber('--port', flags.port) }).catch(taken)
  // The usual port if it is free, any other if not: two projects side by side shall just work.
  return await LocalServer.start({ ...options, port: DEFAULT_PORT }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EADDRINUSE') throw error
    return LocalServer.start({ ...options, port: 0 })
  })
}

function taken(error: NodeJS.ErrnoException): never {
  if (error.code !== 'EADDRINUSE') throw error
  throw new ServoError('conflict', 'port_taken', 'that port is taken', { hint: 'Leave --port away and any free one is used.' })
}

function nextSignal(): Promise<string> {
  return new Promise((resolve) => {
    let asked = false
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
      process.on(signal, () => {
        if (asked) process.exit(130)
        asked = true
        resolve(signal)
      })
    }
  })
}

function showReload(loaded: Reload): void {
  const time = colours.dim(`${Math.round(loaded.ms)} ms`)
  if (!loaded.ok) {
    print(`${clock()} ${colours.red('not loaded')}  the last good version stays  ${time}`)
    printProblems(loaded.problems)
  } else if (loaded.changed > 0) print(`${clock()} loaded  ${loaded.changed} changed  ${time}`)
  else print(`${clock()} loaded  nothing changed  ${time}`)
}

function showChange(change: Change): void {
  if (change.type === 'run') {
    const { run } = change
    if (change.isNew) {
      print(
        `${clock()} ${colours.bold(shortId(run.run_id))} asked for by ${run.trigger_type}: ${printable(run.asset_selection.join(', '))}`,
      )
    }
    if (run.finished_at !== null) print(`${clock()} ${summary(wireRow(runs, run))}`)
    return
  }
  const { task } = change
  if (!['RUNNING', 'SUCCEEDED', 'FAILED', 'RETRY_WAIT', 'SKIPPED', 'CANCELLED'].includes(task.state)) return
  const time = task.finished_at !== null && task.ready_at !== null ? took(toIso(task.ready_at), toIso(task.finished_at)) : ''
  const why = task.error_message && task.state !== 'SUCCEEDED' ? firstLine(task.error_message) : ''
  const details = [time, why].filter(Boolean).map(printable).join('  ')
  print(
    `${clock()} ${shortId(task.run_id)} ${pad(painted(task.state), task.state, 11)} ${printable(task.task_key)}  ${colours.dim(details)}`,
  )
}

const clock = (): string => colours.dim(new Date().toTimeString().slice(0, 8))
