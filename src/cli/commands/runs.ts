import { followWithLogs } from '../../api/detail/follow-with-logs.ts'
import type { LogQuery, RunLogEntry, RunsApi, RunWithAsker, WireAttempt, WireRun, WireTask } from '../../api/run-contract.ts'
import { logText } from '../../contract/log-text.ts'
import { ServoError } from '../../lib/error.ts'
import { ask, type Leadership, tell } from '../ask-and-tell.ts'
import { alignRows, type Cell, tableRows } from '../columns.ts'
import { choiceOf, limitFlag, RUN_STATES, spanFlags, wholeNumber } from '../flags.ts'
import {
  colours,
  endWhenUnread,
  headsOf,
  note,
  print,
  printable,
  printJson,
  printJsonLine,
  printTable,
  screenWidth,
} from '../output.ts'
import { currentTrace, currentUser, type ProjectFlags } from '../project.ts'
import { printChecks, warningsOf } from '../results/checks.ts'
import { printFailures } from '../results/failures.ts'
import { noneOf } from '../show-asset.ts'
import { localTime, notesCell, runTimeCell, shortId, stateCell, summary, timeCell } from '../show-run.ts'
import { requestRun } from './run.ts'

export interface RunListFlags extends ProjectFlags {
  limit?: string
  status?: string
  asset?: string
  since?: string
  until?: string
}

const NO_RUNS = 'no runs yet; servo run starts one, servo assets list shows what can run'

export async function listRuns(flags: RunListFlags): Promise<void> {
  const filter = {
    status: flags.status === undefined ? undefined : choiceOf('--status', flags.status, RUN_STATES),
    asset: flags.asset,
    ...spanFlags(flags),
  }
  const query = { limit: limitFlag(flags.limit, 20), ...filter }
  const isFiltered = Object.values(filter).some((value) => value !== undefined)
  const { found, none } = await ask(flags, async (api, leader) => {
    const found = sayWaiting(await api.runs.list(query), leader)
    return { found, none: found.length === 0 && isFiltered ? await noneOf('run', flags.asset, api) : NO_RUNS }
  })
  if (flags.json) printJson(found)
  else if (found.length > 0) printTable(LIST_HEADS, found.map(runCells))
  else print(none)
}

/** Without a server no run makes progress, and the state of a run does not show that. */
function sayWaiting<Run extends WireRun>(found: readonly Run[], leader: Leadership): readonly Run[] {
  if (leader === 'none' && found.some(({ finished_at }) => finished_at === null))
    note('no server is running; unfinished runs continue once one starts (servo dev)')
  return found
}

const LIST_HEADS = headsOf(['run', 'state', 'requested', 'tasks', 'took', 'asked by', 'selection'], ['tasks', 'took'])
const MAX_SELECTION = 60

function runCells(run: RunWithAsker): Cell[] {
  const selection = run.asset_selection.join(' ')
  return [
    { text: shortId(run.run_id) },
    stateCell(run.state),
    { text: localTime(run.requested_at) },
    { text: `${run.tasks_succeeded}/${run.tasks_total}`, right: true },
    runTimeCell(run),
    { text: printable(run.asked_by ?? run.trigger_type), paint: colours.dim },
    { text: printable(selection.length > MAX_SELECTION ? `${selection.slice(0, MAX_SELECTION)}…` : selection) },
  ]
}

export async function showRun(runId: string, flags: ProjectFlags): Promise<void> {
  const detail = await ask(flags, async ({ runs }, leader) => {
    const found = await runs.get(runId)
    sayWaiting([found.run], leader)
    return found
  })
  if (flags.json) {
    printJson(detail)
    return
  }
  const { run, tasks, attempts } = detail
  const last = new Map(attempts.map((attempt) => [attempt.task_key, attempt]))
  const all = tasks.map((task) => ({ task, attempt: last.get(task.task_key) }))
  print(summary(run, warningsOf(all)))
  const about: Cell[][] = [
    [{ text: 'id' }, { text: run.run_id }],
    [{ text: 'selection' }, { text: printable(run.asset_selection.join(' ')) }],
    [{ text: 'requested' }, { text: `${localTime(run.requested_at)} (${printable(askerOf(run))})` }],
  ]
  const labels = Object.entries(run.labels).map(([name, value]) => `${name}=${value}`)
  if (labels.length > 0) about.push([{ text: 'labels' }, { text: printable(labels.join(' ')) }])
  for (const text of alignRows(about)) print(colours.dim(`  ${text}`))
  const rows = tasks.map((task) => shownTask(task, last.get(task.task_key)))
  for (const text of tableRows(rows, screenWidth() - 2)) print(`  ${text}`)
  printFailures(all, shortId(run.run_id))
  printChecks(all)
}

/** `sensor files`, or `manual by ana`. */
const askerOf = ({ asked_by, trigger_type }: RunWithAsker): string =>
  asked_by === null ? trigger_type : trigger_type === 'manual' ? `manual by ${asked_by}` : asked_by

const shownTask = (task: WireTask, attempt: WireAttempt | undefined): Cell[] => [
  stateCell(task.state),
  timeCell(attempt?.started_at, attempt?.finished_at),
  { text: printable(task.task_key) },
  notesCell(task, attempt),
]

export async function cancelRun(runId: string, flags: ProjectFlags & { reason?: string }): Promise<void> {
  const { accepted, isLive } = await tell(flags, async ({ runs }, isLive) => ({
    accepted: await runs.cancel(runId, currentUser(), flags.reason),
    isLive,
  }))
  const later = isLive ? '' : '; tasks that were running when the server stopped end at its next start'
  if (flags.json) printJson(accepted)
  else print(`${accepted.run_id} is being cancelled${later}`)
}

export interface RerunFlags extends ProjectFlags {
  all?: boolean
  select?: string
  detach?: boolean
  key?: string
}

export async function rerunRun(runId: string, flags: RerunFlags): Promise<void> {
  const mode = flags.all ? 'all' : flags.select !== undefined ? 'subset' : 'from_failure'
  const body = {
    mode,
    ...(flags.select !== undefined && { select: flags.select }),
    ...(flags.key !== undefined && { key: flags.key }),
  } as const
  await requestRun(flags, (runs, request_id) => runs.rerun(runId, { ...body, request_id }, currentUser(), currentTrace()))
}

export interface LogFlags extends ProjectFlags {
  follow?: boolean
  task?: string
  attempt?: string
}

export async function showLogs(runId: string, flags: LogFlags): Promise<void> {
  const attempt = flags.attempt === undefined ? undefined : wholeNumber('--attempt', flags.attempt, { min: 1, max: 1_000_000 })
  const query = { task: flags.task, attempt }
  endWhenUnread()
  await ask(flags, async ({ runs }, leader) => {
    if (flags.follow && leader === 'answers') return await followLogs(runs, runId, query, flags)
    for await (const entry of runs.logs(runId, query)) printEntry(entry, flags)
    if (flags.follow && (await runs.get(runId)).run.finished_at === null) throw cannotFollow(runId, leader)
  })
}

function cannotFollow(runId: string, leader: Leadership): ServoError {
  const run = `${shortId(runId)} is unfinished`
  if (leader === 'silent') {
    const hint = 'Its output so far is above. Try again, or run this command where the server runs.'
    return new ServoError('unavailable', 'no_answer', `${run}, and the server does not answer`, { hint })
  }
  const hint = 'Start one: servo dev'
  return new ServoError('unavailable', 'no_server', `${run}, and no server is running to continue it`, { hint })
}

/** Prints the output so far, then follows it until the run is over. */
async function followLogs(service: RunsApi, runId: string, query: LogQuery, flags: LogFlags): Promise<void> {
  const leave = new AbortController()
  process.once('SIGINT', () => leave.abort())
  for await (const event of followWithLogs(service, runId, leave.signal, query)) {
    if (event.type !== 'log') continue
    const { task_key, attempt } = event
    for (const entry of event.entries) printEntry({ ...entry, task_key, attempt }, flags)
  }
}

function printEntry(entry: RunLogEntry, flags: LogFlags): void {
  if (flags.json) {
    printJsonLine(entry)
    return
  }
  const time = colours.dim(new Date(entry.at).toTimeString().slice(0, 8))
  const level = entry.level && entry.level !== 'info' ? `${entry.level.toUpperCase()} ` : ''
  const begin = `${time} ${colours.dim(`${printable(entry.task_key)} │`)} ${level}`
  const lines = logText(entry).replace(/\n$/, '').split('\n')
  print(lines.map((line) => begin + printable(line)).join('\n'))
}
