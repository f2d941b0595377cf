import type { RunLogEntry, RunsApi, WireRow } from '../../api/run-contract.ts'
import { ServoError } from '../../lib/error.ts'
import { colours, print, printable, printJson } from '../output.ts'
import { currentUser, findProject, type ProjectFlags, runningServer, servoDirOf } from '../project.ts'
import { firstLine, pad, painted, shortId, summary, took } from '../show-run.ts'
import { runHere, watchRun, wholeNumber } from './run.ts'

/** The server of the project, or, when none runs, what can be read and written without one. */
async function open(flags: ProjectFlags): Promise<{ service: RunsApi; projectDir: string; live: boolean }> {
  const projectDir = findProject(flags)
  const server = await runningServer(projectDir)
  if (server !== undefined) return { service: server, projectDir, live: true }
  const { offlineRuns } = await import('../../server/offline.ts')
  return { service: await offlineRuns(servoDirOf(projectDir)), projectDir, live: false }
}

export async function listRuns(flags: ProjectFlags & { limit?: string; state?: string }): Promise<void> {
  const { service } = await open(flags)
  const limit = flags.limit === undefined ? 20 : wholeNumber('--limit', flags.limit)
  const found = await service.list({ limit, ...(flags.state !== undefined && { state: flags.state.toUpperCase() }) })
  if (flags.json) {
    printJson(found)
    return
  }
  if (found.length === 0) print('no runs yet; start one with: servo run "*"')
  for (const run of found) {
    const selection = (run['asset_selection'] as string[]).join(', ')
    const time = took(run['started_at'] ?? run['requested_at'], run['finished_at'])
    print(
      `${shortId(run['run_id'])}  ${pad(painted(run['state']), run['state'], 11)} ${String(run['requested_at']).slice(0, 19).replace('T', ' ')}  ${`${run['tasks_succeeded']}/${run['tasks_total']}`.padEnd(9)} ${time.padEnd(9)} ${colours.dim(printable(selection.slice(0, 60)))}`,
    )
  }
}

export async function showRun(runId: string, flags: ProjectFlags): Promise<void> {
  const { service } = await open(flags)
  const detail = await service.get(runId)
  if (flags.json) {
    printJson(detail)
    return
  }
  const { run, tasks, attempts } = detail
  print(summary(run))
  print(
    colours.dim(
      `  ${run['run_id']}  asked for by ${run['trigger_type']} at ${run['requested_at']}  ${(run['asset_selection'] as string[]).join(', ')}`,
    ),
  )
  for (const task of tasks) {
    const own = attempts.filter((attempt) => attempt['task_key'] === task['task_key'])
    print(
      `  ${pad(painted(task['state']), task['state'], 11)} ${printable(String(task['task_key']))}  ${taskTime(own)}${notes(task, own)}`,
    )
  }
}

const taskTime = (attempts: readonly WireRow[]): string => {
  const last = attempts.at(-1)
  return colours.dim(took(last?.['started_at'] ?? last?.['dispatched_at'], last?.['finished_at']))
}

function notes(task: WireRow, attempts: readonly WireRow[]): string {
  const tried = attempts.length > 1 ? `  ${attempts.length} attempts` : ''
  const why = task['error_message'] && task['state'] !== 'SUCCEEDED' ? `  ${firstLine(String(task['error_message']))}` : ''
  const cause = task['cause_task_key'] ? `  because of ${task['cause_task_key']}` : ''
  return printable(tried + why + cause)
}

export async function cancelRun(runId: string, flags: ProjectFlags & { reason?: string }): Promise<void> {
  const { service, live } = await open(flags)
  const accepted = await service.cancel(runId, currentUser(), flags.reason)
  if (flags.json) printJson(accepted)
  else
    print(
      `${accepted.run_id} is being cancelled${live ? '' : '; what was running when its server stopped ends at the next start'}`,
    )
}

export interface RerunFlags extends ProjectFlags {
  all?: boolean
  select?: string
  wait?: boolean
  key?: string
}

export async function rerunRun(runId: string, flags: RerunFlags): Promise<void> {
  if (flags.all && flags.select !== undefined) {
    throw new ServoError('invalid', 'bad_flags', '--all and --select exclude each other', { hint: 'Use one of them.' })
  }
  const mode = flags.all ? 'all' : flags.select !== undefined ? 'subset' : 'from_failure'
  const body = {
    mode,
    ...(flags.select !== undefined && { selection: flags.select }),
    ...(flags.key !== undefined && { key: flags.key }),
  } as const
  const { service, projectDir, live } = await open(flags)
  if (!live) {
    await runHere(projectDir, flags, async (runs) => (await runs.rerun(runId, body, currentUser())).run_id)
    return
  }
  const accepted = await service.rerun(runId, body, currentUser())
  if (flags.wait) await watchRun(service, accepted.run_id, flags)
  else if (flags.json) printJson(accepted)
  else print(`accepted ${accepted.run_id}`)
}

export interface LogFlags extends ProjectFlags {
  follow?: boolean
  task?: string
  attempt?: string
}

export async function showLogs(runId: string, flags: LogFlags): Promise<void> {
  const { service, live } = await open(flags)
  const attempt = flags.attempt === undefined ? undefined : wholeNumber('--attempt', flags.attempt)
  const wanted = (task: string, number: number): boolean =>
    (flags.task === undefined || flags.task === task) && (attempt === undefined || attempt === number)
  for await (const entry of service.logs(runId, { task: flags.task, attempt })) printEntry(entry.task_key, entry, flags)
  if (!flags.follow || !live) return
  const leave = new AbortController()
  process.once('SIGINT', () => leave.abort())
  for await (const event of service.follow(runId, leave.signal)) {
    if (event.type !== 'log' || !wanted(event.task_key, event.attempt)) continue
    for (const entry of event.entries)
      printEntry(event.task_key, { ...entry, task_key: event.task_key, attempt: event.attempt }, flags)
  }
}

function printEntry(task: string, entry: RunLogEntry, flags: LogFlags): void {
  if (flags.json) {
    print(JSON.stringify(entry))
    return
  }
  const time = colours.dim(new Date(entry.at).toISOString().slice(11, 23))
  const level = entry.level && entry.level !== 'info' ? `${entry.level.toUpperCase()} ` : ''
  for (const line of entry.text.replace(/\n$/, '').split('\n'))
    print(`${time} ${colours.dim(printable(task))} ${level}${printable(line)}`)
}
