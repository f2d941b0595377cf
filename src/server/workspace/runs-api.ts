import type { LogQuery, NewRunBody, RerunBody, RunEvent, RunLogEntry, RunsApi } from '../../api/run-contract.ts'
import { isRunOver, type RunState, runs } from '../../domain/runs/runs.table.ts'
import { taskAttempts } from '../../domain/tasks/task-attempts.table.ts'
import { tasks } from '../../domain/tasks/tasks.table.ts'
import type { Paths } from '../../engine/paths.ts'
import { Channel } from '../../lib/channel.ts'
import type { AnyRow } from '../../model/table.ts'
import type { ObjectStore } from '../../ports/object-store.ts'
import type { Change, Feed } from '../leader/feed.ts'
import { type AttemptLogs, readAttemptLog } from '../leader/logs.ts'
import type { RunReader } from './run-reader.ts'
import type { Runs } from './runs.ts'
import { wireRow } from './wire.ts'

export interface RunsApiOptions {
  readonly runs: Runs
  readonly reader: RunReader
  readonly store: ObjectStore
  readonly paths: Paths
  /** What happens, as it happens; absent where nothing does. */
  readonly live?: Live | undefined
}

export interface Live {
  readonly feed: Feed
  readonly logs: AttemptLogs
}

/** Everything that can be asked of runs, as the API and the commands ask it. */
export function runsApi({ runs: commands, reader, live, store, paths }: RunsApiOptions): RunsApi {
  return {
    request: (body: NewRunBody, user, traceparent) => commands.request({ ...body, user, traceparent }),
    cancel: (runId, user, reason) => commands.cancel(runId, user, reason),
    rerun: (runId, body: RerunBody, user, traceparent) => commands.rerun(runId, { ...body, user, traceparent }),
    list: ({ limit, state }) => reader.list({ limit, ...(state !== undefined && { state }) }),
    get: (runId) => reader.get(runId),
    async *logs(runId, query) {
      await live?.logs.stored(await reader.resolve(runId))
      yield* storedLogs(reader, store, paths, runId, query)
    },
    follow: (runId, signal) => followed(reader, live, runId, signal),
  }
}

/** What the attempts of a run have said, attempt after attempt. */
async function* storedLogs(
  reader: RunReader,
  store: ObjectStore,
  paths: Paths,
  runId: string,
  { task, attempt }: LogQuery,
): AsyncGenerator<RunLogEntry> {
  const { run, attempts } = await reader.get(runId)
  for (const each of [...attempts].sort(byStart)) {
    const task_key = String(each['task_key'])
    const number = Number(each['attempt'])
    if ((task !== undefined && task !== task_key) || (attempt !== undefined && attempt !== number)) continue
    for await (const entry of readAttemptLog(store, paths, String(run['run_id']), String(each['attempt_id']))) {
      yield { ...entry, task_key, attempt: number }
    }
  }
}

const byStart = (a: AnyRow, b: AnyRow): number => (String(a['dispatched_at']) < String(b['dispatched_at']) ? -1 : 1)

async function* followed(
  reader: RunReader,
  live: Live | undefined,
  idOrStart: string,
  signal: AbortSignal,
): AsyncGenerator<RunEvent> {
  const runId = await reader.resolve(idOrStart)
  const channel = new Channel<RunEvent>()
  // Listening begins before looking, so that nothing falls between the two.
  const stops = [
    live?.feed.listen((change) => {
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
    const last = new Map(attempts.map((attempt) => [attempt['task_key'], attempt]))
    for (const task of known) yield { type: 'task', task, attempt: last.get(task['task_key']) }
    if (live === undefined || isRunOver(run['state'] as RunState)) return
    yield* channel
  } finally {
    signal.removeEventListener('abort', hangUp)
    for (const stop of stops) stop?.()
  }
}

const runIdOf = (change: Change): string => (change.type === 'run' ? change.run.run_id : change.task.run_id)

function wireChange(change: Change): RunEvent {
  if (change.type === 'run') return { type: 'run', run: wireRow(runs, change.run) }
  const { task, attempt } = change
  return { type: 'task', task: wireRow(tasks, task), attempt: attempt && wireRow(taskAttempts, attempt) }
}
