import { wireRow } from '../api/wire-row.ts'
import type { ProjectManifest } from '../contract/project-manifest.ts'
import { type BackfillRow, backfills } from '../domain/backfills/backfills.table.ts'
import { runs } from '../domain/runs/runs.table.ts'
import { scheduleTicks } from '../domain/schedules/schedule-ticks.table.ts'
import { besidesRuns, wordsBesidesRuns } from '../domain/sensors/evaluation/besides-runs.ts'
import { whyNoNewRun } from '../domain/sensors/evaluation/no-new-run.ts'
import { taskAttempts } from '../domain/tasks/task-attempts.table.ts'
import { tasks } from '../domain/tasks/tasks.table.ts'
import { counted } from '../lib/text/counted.ts'
import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../lib/time.ts'
import type { Change, RecordedTick, Switch } from '../server/leader/feed.ts'
import type { Reload } from '../server/machine/local-server.ts'
import type { Changed } from '../server/server.ts'
import { colours, print, printable, printJsonLine } from './output.ts'
import { countsOf, endedOf, sizeText, stateText } from './results/backfill-counts.ts'
import { findingLines, warningsOf } from './results/checks.ts'
import { failureLines } from './results/failures.ts'
import { printProblems } from './show-problems.ts'
import { localTime, runEndLine, shortId, taskLine, tasksText } from './show-run.ts'

/** When a schedule ticks next. */
export interface NextTick {
  readonly schedule: string
  readonly at: string
}

/** As many as one takes in at a glance; servo schedules list has them all. */
const SHOWN_TICKS = 3

/** The last lines that an evaluation printed. */
const SHOWN_LINES = 10
/** As many runs of an evaluation as fit into a line. */
const SHOWN_RUNS = 3

/** How often a sensor is polled. */
export interface PolledSensor {
  readonly sensor: string
  readonly every_ms: number
}

/** What comes by itself: ticks and polls. */
export interface Upcoming {
  readonly ticks: readonly NextTick[]
  readonly polls: readonly PolledSensor[]
  /** Schedules that are paused, by themselves or with all automation. */
  readonly paused: readonly string[]
  /** False with --no-automation: nothing comes by itself. */
  readonly isOn: boolean
}

/** The output of `servo dev` about itself. */
export interface DevVoice {
  ready(url: string, loaded: Reload, ms: number, next: Upcoming): void
  loaded(loaded: Reload): void
  changed(change: Change): void
  /** The end of what a sensor or a condition printed. */
  printed(by: string, text: string): void
  /** A signal came: so many tasks are running, and have so long to end. */
  draining?(running: number, ms: number): void
  /** The number of tasks that were running. */
  stopped(running: number): void
}

function firstOf(names: readonly string[]): string {
  const more = names.length - SHOWN_TICKS
  return `${names.slice(0, SHOWN_TICKS).join(', ')}${more > 0 ? ` and ${more} more: servo schedules list` : ''}`
}

const clock = (): string => colours.dim(new Date().toTimeString().slice(0, 8))

/** How many checks warned in each run that is under way. */
const warnings = new Map<string, number>()
/** Runs of backfills that have not ended. */
const ofBackfills = new Set<string>()

/** Runs of a backfill may be thousands, and their tasks millions, so that only failures are shown besides the backfill itself. */
export function isShown(change: Change): boolean {
  if (change.type === 'task') return change.task.state === 'FAILED' || !ofBackfills.has(change.task.run_id)
  if (change.type !== 'run' || change.run.trigger_type !== 'backfill') return true
  if (change.run.finished_at === null) ofBackfills.add(change.run.run_id)
  else ofBackfills.delete(change.run.run_id)
  return false
}

/** For people: a line for everything that happens, the fixed parts first. */
export const screen: DevVoice = {
  ready(url, loaded, ms, { ticks, polls, paused, isOn }) {
    const name = loaded.ok
      ? [colours.bold(printable(loaded.manifest.project)), counted(loaded.manifest.assets.length, 'asset')]
      : []
    print([colours.bold(colours.green('servo dev')), ...name, url, colours.dim(`ready in ${Math.round(ms)} ms`)].join('  '))
    if (loaded.ok) print(colours.dim(`  ${howToRun(loaded.manifest)}\n  saving a file reloads the project; Ctrl-C stops`))
    else notLoaded(loaded.problems, 'correct it and save; unfinished runs wait')
    if (!isOn)
      print(`  ${colours.yellow('automation is off')}: schedules do not tick and sensors are not evaluated (--no-automation)`)
    for (const { schedule, at } of ticks.slice(0, SHOWN_TICKS))
      print(colours.dim(`  ${printable(schedule)} ticks at ${localTime(at)}`))
    if (ticks.length > SHOWN_TICKS)
      print(colours.dim(`  and ${counted(ticks.length - SHOWN_TICKS, 'more schedule')}: servo schedules list`))
    if (paused.length > 0) print(`  ${colours.yellow(`${paused.length} paused`)}: ${printable(firstOf(paused))}`)
    for (const { sensor, every_ms } of polls.slice(0, SHOWN_TICKS))
      print(colours.dim(`  ${printable(sensor)} is polled every ${intervalText(every_ms)}`))
    if (polls.length > SHOWN_TICKS)
      print(colours.dim(`  and ${counted(polls.length - SHOWN_TICKS, 'more poll')}: servo sensors list`))
  },
  loaded(loaded) {
    const time = colours.dim(` in ${Math.round(loaded.ms)} ms`)
    if (loaded.ok) print(`${clock()} ${colours.green('loaded')}  ${changesText(loaded)}${time}`)
    else notLoaded(loaded.problems, 'correct it and save; the last version that loaded stays in use')
  },
  changed(change) {
    if (!isShown(change)) return
    if (change.type === 'tick') {
      print(`${clock()} ${printable(change.schedule.schedule_name)}  ${tickText(change.tick)}`)
      return
    }
    if (change.type === 'switch') {
      print(`${clock()} ${switchText(change)}`)
      return
    }
    if (change.type === 'backfill') {
      print(`${clock()} ${backfillText(change.backfill)}`)
      return
    }
    if (change.type === 'task') {
      const { task, attempt } = change
      const now = { task: wireRow(tasks, task), attempt: attempt && wireRow(taskAttempts, attempt) }
      const text = taskLine(now.task, now.attempt)
      if (text !== undefined) print(`${clock()} ${colours.dim(shortId(task.run_id))}  ${text}`)
      const failure = failureLines(now)
      // The line of the task has the first line of it already.
      const isSaid = failure.length === 1 && text?.includes(failure[0]?.trim() ?? '')
      for (const line of [...(isSaid ? [] : failure), ...findingLines(now.attempt)]) print(`         ${line}`)
      if (task.finished_at !== null) warnings.set(task.run_id, (warnings.get(task.run_id) ?? 0) + warningsOf([now]))
      return
    }
    if (change.type === 'evaluation') {
      print(`${clock()} ${printable(change.sensor.sensor_name)}  ${evaluationText(change)}`)
      return
    }
    const { run, isNew } = change
    if (isNew)
      print(`${clock()} ${shortId(run.run_id)}  ${tasksText(run.tasks_total)}: ${printable(run.asset_selection.join(' '))}`)
    if (run.finished_at === null) return
    print(`${clock()} ${shortId(run.run_id)}  ${runEndLine(wireRow(runs, run), warnings.get(run.run_id) ?? 0)}`)
    warnings.delete(run.run_id)
  },
  printed(by, text) {
    for (const line of text.trimEnd().split('\n').slice(-SHOWN_LINES))
      print(`${clock()} ${colours.dim(printable(`${by} | ${line}`))}`)
  },
  stopped(running) {
    // A terminal shows ^C where the cursor was.
    const begin = process.stdout.isTTY ? '\n' : ''
    const then = running > 0 ? `; ${tasksText(running)} interrupted, which the next start runs again` : ''
    print(`${begin}${colours.dim(`stopped${then}`)}`)
  },
}

/** For programs: a JSON object per line. */
export const jsonLines: DevVoice = {
  ready: (url, loaded, ms, { ticks, polls, paused, isOn }) =>
    printJsonLine({
      type: 'ready',
      url,
      ms: Math.round(ms),
      ...outcome(loaded),
      automation: isOn,
      next_ticks: ticks,
      paused,
      polls,
    }),
  loaded: (loaded) => printJsonLine({ type: 'loaded', ms: Math.round(loaded.ms), ...outcome(loaded) }),
  changed: (change) => {
    if (isShown(change)) printJsonLine(changeLine(change))
  },
  printed: (by, text) => printJsonLine({ type: 'printed', by, text }),
  stopped: (running) => printJsonLine({ type: 'stopped', running }),
}

function changeLine(change: Change): object {
  if (change.type === 'run') return { type: 'run', run: wireRow(runs, change.run) }
  if (change.type === 'task') {
    const { task, attempt } = change
    return { type: 'task', task: wireRow(tasks, task), ...(attempt && { attempt: wireRow(taskAttempts, attempt) }) }
  }
  if (change.type === 'evaluation') return { type: 'evaluation', evaluation: evaluationLine(change) }
  if (change.type === 'backfill') return { type: 'backfill', backfill: wireRow(backfills, change.backfill) }
  if (change.type === 'switch') {
    const { type, ...what } = change
    return { type, switch: what }
  }
  const { schedule_id, schedule_name } = change.schedule
  const tick = wireRow(scheduleTicks, change.tick)
  return {
    type: 'tick',
    tick: {
      schedule_id,
      schedule_name,
      tick_id: tick.tick_id,
      scheduled_for: tick.scheduled_for,
      scheduled_until: tick.scheduled_until,
      tick_count: tick.tick_count,
      status: tick.status,
      cause: tick.cause,
      requested_by: tick.requested_by,
      reason: tick.reason,
      run_key: tick.run_key,
      run_id: tick.run_id,
    },
  }
}

function backfillText(backfill: Readonly<BackfillRow>): string {
  const { backfill_id, state, total_partitions, total_chunks } = backfill
  const reason = backfill.cancel_requested_at === null ? backfill.state_reason : backfill.cancel_reason
  const paint = state === 'SUCCEEDED' ? colours.green : state === 'FAILED' ? colours.red : colours.yellow
  const isBegun = state === 'RUNNING' && endedOf(backfill) === 0
  const counts = isBegun
    ? `${sizeText(total_partitions, total_chunks)}: ${printable(backfill.asset_selection.join(' '))}`
    : countsOf(backfill)
  return `${backfill_id}  ${paint(stateText(backfill))}  ${counts}${reason === null ? '' : `: ${printable(reason)}`}`
}

function tickText(row: RecordedTick): string {
  const { scheduled_for, scheduled_until, tick_count, status, cause, reason, requested_by, run_id } = wireRow(
    scheduleTicks,
    row,
  )
  const isRange = scheduled_until !== null && scheduled_until !== scheduled_for
  const of = isRange
    ? `${tick_count?.toLocaleString('en')} ${tick_count === 1 ? 'tick' : 'ticks'} from ${localTime(scheduled_for)} to ${localTime(scheduled_until)}`
    : cause === 'manual'
      ? `requested by ${printable(requested_by ?? 'somebody')}`
      : `tick of ${localTime(scheduled_for)}${cause === 'catch_up' ? ', caught up' : ''}`
  const why = reason === null ? (run_id === null ? '' : `: ${shortId(run_id)}`) : `: ${printable(reason)}`
  const paint = status === 'triggered' ? colours.green : status === 'failed' ? colours.red : colours.yellow
  return `${paint(status ?? '')}  ${of}${why}`
}

function switchText({ name, to, by, reason }: Switch): string {
  const paint = to === 'paused' ? colours.yellow : colours.green
  const who = by === null ? '' : ` by ${printable(by)}`
  return `${name === null ? 'all automation' : printable(name)}  ${paint(to)}${who}${reason === null ? '' : `: ${printable(reason)}`}`
}

/** The largest unit of which it is a whole number: 90 s, 5 min, 1 h. */
function intervalText(ms: number): string {
  const units = [
    ['h', HOUR_MS],
    ['min', MINUTE_MS],
    ['s', SECOND_MS],
  ] as const
  const [unit, size] = units.find(([, each]) => ms % each === 0) ?? ['ms', 1]
  return `${ms / size} ${unit}`
}

type EvaluationChange = Extract<Change, { type: 'evaluation' }>

function evaluationLine({ sensor, evaluation, run_ids, runs }: EvaluationChange): object {
  const { eval_id, status, accepted, trigger_source, message_id, error, run_keys } = evaluation
  const { sensor_id, sensor_name } = sensor
  return {
    sensor_id,
    sensor_name,
    eval_id,
    trigger_source,
    message_id,
    try: evaluation.try,
    status,
    accepted,
    error,
    run_keys,
    run_ids,
    runs,
    ...besidesRuns(evaluation),
  }
}

/** What became of an evaluation, in one line. */
export function evaluationText({ evaluation, runs }: EvaluationChange): string {
  const { status, trigger_source, message_id, error, requested_by } = evaluation
  const of = trigger_source === 'push' ? `message ${printable(message_id ?? '')}` : 'poll'
  const by = requested_by === null ? '' : ` requested by ${printable(requested_by)}`
  const made = runs.filter(({ created }) => created).map(({ run_id }) => shortId(run_id))
  const writing = { run: shortId, when: localTime }
  const others = runs.filter(({ created }) => !created).map((one) => `no new run: ${printable(whyNoNewRun(one, writing))}`)
  const besides = wordsBesidesRuns(besidesRuns(evaluation)).map(printable)
  const idle = status === 'no_new_data' ? ['no run requested'] : []
  const did = [...shortened(made, ' '), ...shortened(others, '; '), ...idle, ...besides].join(', ')
  const why = error === null ? '' : `: ${printable(error)}`
  const paint = status === 'error' ? colours.red : status === 'triggered' ? colours.green : colours.yellow
  return `${paint(status)}  ${of}${by}${did === '' ? '' : `: ${did}`}${why}`
}

/** As many as fit into a line, as one text. */
function shortened(texts: readonly string[], between: string): string[] {
  if (texts.length === 0) return []
  const more = texts.length > SHOWN_RUNS ? ` and ${texts.length - SHOWN_RUNS} more` : ''
  return [`${texts.slice(0, SHOWN_RUNS).join(between)}${more}`]
}

const outcome = (loaded: Reload): object =>
  loaded.ok
    ? { ok: true, project: loaded.manifest.project, assets: loaded.manifest.assets.length, ...changedCounts(loaded.changed) }
    : { ok: false, problems: loaded.problems }

const changedCounts = ({ assets, schedules, sensors }: Changed): object => ({
  changed: assets,
  changed_schedules: schedules,
  changed_sensors: sensors,
})

function notLoaded(problems: Extract<Reload, { ok: false }>['problems'], then: string): void {
  print(`${clock()} ${colours.red('not loaded')}  ${then}`)
  printProblems(problems)
}

/** A run of what has partitions names them. */
const howToRun = ({ assets }: ProjectManifest): string =>
  assets.some(({ partitions }) => partitions)
    ? 'servo run "*" --partition <key> runs everything for a partition'
    : 'servo run "*" runs everything'

function changesText({ changed, hasNewSettings }: Extract<Reload, { ok: true }>): string {
  const { assets, schedules, sensors } = changed
  const what = [
    assets > 0 && counted(assets, 'asset'),
    schedules > 0 && counted(schedules, 'schedule'),
    sensors > 0 && counted(sensors, 'sensor'),
    hasNewSettings && 'settings',
  ].filter((text) => text !== false)
  const last = what.pop() ?? 'nothing'
  return `${what.length === 0 ? '' : `${what.join(', ')} and `}${last} changed`
}
