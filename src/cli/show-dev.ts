import { wireRow } from '../api/wire-row.ts'
import { runs } from '../domain/runs/runs.table.ts'
import { taskAttempts } from '../domain/tasks/task-attempts.table.ts'
import { tasks } from '../domain/tasks/tasks.table.ts'
import type { Change } from '../server/leader/feed.ts'
import type { Reload } from '../server/machine/local-server.ts'
import { colours, print, printable } from './output.ts'
import { printProblems } from './show-problems.ts'
import { runEndLine, shortId, taskLine, tasksText } from './show-run.ts'

/** The output of `servo dev` about itself. */
export interface DevVoice {
  ready(url: string, loaded: Reload, ms: number): void
  loaded(loaded: Reload): void
  changed(change: Change): void
  /** The number of tasks that were running. */
  stopped(running: number): void
}

const clock = (): string => colours.dim(new Date().toTimeString().slice(0, 8))

/** For people: a line for everything that happens, the fixed parts first. */
export const screen: DevVoice = {
  ready(url, loaded, ms) {
    const name = loaded.ok ? [colours.bold(printable(loaded.manifest.project)), assetsText(loaded.manifest.assets.length)] : []
    print([colours.bold(colours.green('servo dev')), ...name, url, colours.dim(`ready in ${Math.round(ms)} ms`)].join('  '))
    if (loaded.ok) print(colours.dim('  servo run "*" runs everything; saving a file loads it again; Ctrl-C stops'))
    else notLoaded(loaded.problems, 'repair it and save; what was running waits')
  },
  loaded(loaded) {
    const time = colours.dim(` in ${Math.round(loaded.ms)} ms`)
    if (loaded.ok) print(`${clock()} ${colours.green('loaded')}  ${changesText(loaded)}${time}`)
    else notLoaded(loaded.problems, 'the last good version stays')
  },
  changed(change) {
    if (change.type === 'task') {
      const { task, attempt } = change
      const text = taskLine(wireRow(tasks, task), attempt && wireRow(taskAttempts, attempt))
      if (text !== undefined) print(`${clock()} ${colours.dim(shortId(task.run_id))}  ${text}`)
      return
    }
    const { run, isNew } = change
    if (isNew)
      print(`${clock()} ${shortId(run.run_id)}  ${tasksText(run.tasks_total)}: ${printable(run.asset_selection.join(' '))}`)
    if (run.finished_at !== null) print(`${clock()} ${shortId(run.run_id)}  ${runEndLine(wireRow(runs, run))}`)
  },
  stopped(running) {
    // A terminal shows ^C where the cursor was.
    const begin = process.stdout.isTTY ? '\n' : ''
    const then = running > 0 ? `; ${tasksText(running)} that ran will run again at the next start` : ''
    print(`${begin}${colours.dim(`stopped${then}`)}`)
  },
}

/** For programs: a JSON object per line. */
export const jsonLines: DevVoice = {
  ready: (url, loaded, ms) => say({ type: 'ready', url, ms: Math.round(ms), ...outcome(loaded) }),
  loaded: (loaded) => say({ type: 'loaded', ms: Math.round(loaded.ms), ...outcome(loaded) }),
  changed: (change) =>
    say(
      change.type === 'run'
        ? { type: 'run', run: wireRow(runs, change.run) }
        : { type: 'task', task: wireRow(tasks, change.task) },
    ),
  stopped: (running) => say({ type: 'stopped', running }),
}

const say = (line: unknown): void => print(JSON.stringify(line))

const outcome = (loaded: Reload): object =>
  loaded.ok
    ? { ok: true, project: loaded.manifest.project, assets: loaded.manifest.assets.length, changed: loaded.changed }
    : { ok: false, problems: loaded.problems }

function notLoaded(problems: Extract<Reload, { ok: false }>['problems'], then: string): void {
  print(`${clock()} ${colours.red('not loaded')}  ${then}`)
  printProblems(problems)
}

const assetsText = (count: number): string => (count === 1 ? '1 asset' : `${count} assets`)

function changesText({ changed, hasNewSettings }: Extract<Reload, { ok: true }>): string {
  const what = [changed > 0 && assetsText(changed), hasNewSettings && 'settings'].filter(Boolean)
  return `${what.join(' and ') || 'nothing'} changed`
}
