import { z } from 'zod'
import type { LogPage } from '../../api/detail/detail-contract.ts'
import type { LogQuery, RunDetail, RunEvent, RunLogEntry, WireAttempt } from '../../api/run-contract.ts'
import { wireRow } from '../../api/wire-row.ts'
import { isRunOver, runs } from '../../domain/runs/runs.table.ts'
import { taskAttempts } from '../../domain/tasks/task-attempts.table.ts'
import { tasks } from '../../domain/tasks/tasks.table.ts'
import type { Paths } from '../../engine/paths.ts'
import { Channel } from '../../lib/collections/channel.ts'
import { ServoError } from '../../lib/error.ts'
import { jsonOrText } from '../../lib/json.ts'
import { nearest } from '../../lib/nearest.ts'
import type { ObjectStore } from '../../ports/object-store.ts'
import type { Change, Feed } from '../leader/feed.ts'
import { type AttemptLogs, readAttemptLog } from '../leader/logs.ts'
import { badCursor } from './page.ts'
import type { RunReader } from './run-reader.ts'

/** The events of this process, as they happen. */
export interface Live {
  readonly feed: Feed
  readonly logs: AttemptLogs
}

/** The output of the attempts of a run, one attempt after the other. */
export async function* storedLogs(
  reader: RunReader,
  store: ObjectStore,
  paths: Paths,
  runId: string,
  { task, attempt }: LogQuery,
): AsyncGenerator<RunLogEntry> {
  const detail = await reader.get(runId)
  refuseUnknownTask(detail, task)
  const { run, attempts } = detail
  for (const each of [...attempts].sort(byDispatch)) {
    const { task_key, attempt: number } = each
    if ((task !== undefined && task !== task_key) || (attempt !== undefined && attempt !== number)) continue
    for await (const entry of readAttemptLog(store, paths, run.run_id, each.attempt_id)) {
      yield { ...entry, task_key, attempt: number }
    }
  }
}

/** Some lines of that output. Attempts that were passed are not read again. */
export async function storedLogPage(
  reader: RunReader,
  store: ObjectStore,
  paths: Paths,
  runId: string,
  { task, attempt, limit, cursor }: LogQuery & { limit: number; cursor?: string | undefined },
): Promise<LogPage> {
  const detail = await reader.get(runId)
  refuseUnknownTask(detail, task)
  const { run, attempts } = detail
  const wanted = [...attempts]
    .sort(byDispatch)
    .filter((each) => (task === undefined || task === each.task_key) && (attempt === undefined || attempt === each.attempt))
  const [after, passed] = cursor === undefined ? ['', 0] : placeIn(cursor)
  const first = after === '' ? 0 : wanted.findIndex(({ attempt_id }) => attempt_id === after)
  if (first < 0) throw badCursor()
  const entries: RunLogEntry[] = []
  for (const [i, each] of wanted.slice(first).entries()) {
    let number = 0
    for await (const entry of readAttemptLog(store, paths, run.run_id, each.attempt_id)) {
      number += 1
      if (i === 0 && number <= passed) continue
      if (entries.length === limit) return { entries, next_cursor: cursorAt(each.attempt_id, number - 1) }
      entries.push({ ...entry, task_key: each.task_key, attempt: each.attempt })
    }
  }
  return { entries, next_cursor: null }
}

const cursorAt = (attemptId: string, entries: number): string =>
  Buffer.from(JSON.stringify([attemptId, entries])).toString('base64url')

function placeIn(cursor: string): [attemptId: string, entries: number] {
  const parsed = z.tuple([z.string(), z.number().int()]).safeParse(jsonOrText(Buffer.from(cursor, 'base64url').toString()))
  if (!parsed.success) throw badCursor()
  return parsed.data
}

/** As many as one reads. */
const SHOWN_TASKS = 3

/** A task is named by its key. A run that has only been requested has no tasks yet. */
function refuseUnknownTask({ run, tasks: known }: RunDetail, asked: string | undefined): void {
  if (asked === undefined || known.some(({ task_key }) => task_key === asked)) return
  if (known.length > 0 || isRunOver(run.state)) throw unknownTask(run.run_id, asked, known)
}

export function unknownTask(runId: string, asked: string, tasksOfRun: readonly { task_key: string }[]): ServoError {
  const keys = tasksOfRun.map(({ task_key }) => task_key)
  // Whoever leaves out the partition means one of the tasks of the asset.
  const ofAsset = keys.filter((key) => key.startsWith(`${asked}[`))
  const meant = nearest(asked, keys)
  const some = ofAsset.length > 0 ? ofAsset : keys
  const more = some.length > SHOWN_TASKS ? ` and ${some.length - SHOWN_TASKS} more` : ''
  const listed = `Its tasks: ${some.slice(0, SHOWN_TASKS).join(', ')}${more}.`
  return new ServoError('not_found', 'no_such_task', `task ${JSON.stringify(asked.slice(0, 255))} not found in ${runId}`, {
    hint:
      keys.length === 0 ? 'It has no tasks.' : meant !== undefined && ofAsset.length === 0 ? `Did you mean ${meant}?` : listed,
  })
}

const byDispatch = (a: WireAttempt, b: WireAttempt): number => (a.dispatched_at < b.dispatched_at ? -1 : 1)

/** The current state of the run, then its changes until it is over; without `live` only the current state. */
export async function* runEvents(
  reader: RunReader,
  live: Live | undefined,
  idOrStart: string,
  signal: AbortSignal,
): AsyncGenerator<RunEvent> {
  const runId = await reader.resolve(idOrStart)
  const channel = new Channel<RunEvent>()
  // Listening begins before reading, so that no change falls between the two.
  const stops = [
    live?.feed.listen((change) => {
      if (change.type !== 'run' && change.type !== 'task') return
      if (runIdOf(change) === runId) channel.push(wireChange(change))
      if (change.type === 'run' && change.run.run_id === runId && isRunOver(change.run.state)) channel.close()
    }),
    live?.logs.follow(runId, (said) => channel.push({ type: 'log', ...said })),
  ]
  const hangUp = (): void => channel.close()
  signal.addEventListener('abort', hangUp)
  try {
    const { run, tasks: known, attempts } = await reader.get(runId)
    yield { type: 'run', run }
    const last = new Map(attempts.map((attempt) => [attempt.task_key, attempt]))
    for (const task of known) yield { type: 'task', task, attempt: last.get(task.task_key) }
    if (live === undefined || isRunOver(run.state)) return
    yield* channel
  } finally {
    signal.removeEventListener('abort', hangUp)
    for (const stop of stops) stop?.()
  }
}

type RunChange = Extract<Change, { type: 'run' | 'task' }>

const runIdOf = (change: RunChange): string => (change.type === 'run' ? change.run.run_id : change.task.run_id)

function wireChange(change: RunChange): RunEvent {
  if (change.type === 'run') return { type: 'run', run: wireRow(runs, change.run) }
  const { task, attempt } = change
  return { type: 'task', task: wireRow(tasks, task), attempt: attempt && wireRow(taskAttempts, attempt) }
}
