import type { LogQuery, RunEvent, RunsApi } from '../run-contract.ts'

/** The number of log entries that were shown, by attempt. */
export type LogsShown = Map<string, number>

/**
 * Everything that happens in a run until it is over, with the log from its beginning. Listening begins before the stored log is
 * read, so an entry may come both ways; it comes out once, even when a run is followed from one server to the next with the
 * same `shown`.
 */
export async function* followWithLogs(
  service: RunsApi,
  runId: string,
  signal: AbortSignal,
  query: LogQuery = {},
  shown: LogsShown = new Map(),
): AsyncGenerator<RunEvent> {
  let isFirst = true
  for await (const event of service.follow(runId, signal)) {
    if (event.type !== 'log') yield event
    else if (isWanted(query, event)) {
      const known = Math.max(0, (shown.get(nameOf(event)) ?? 0) - event.first)
      if (known < event.entries.length) {
        shown.set(nameOf(event), event.first + event.entries.length)
        yield { ...event, first: event.first + known, entries: event.entries.slice(known) }
      }
    }
    if (!isFirst) continue
    isFirst = false
    const read = new Map<string, number>()
    for await (const { task_key, attempt, ...entry } of service.logs(runId, query)) {
      const name = nameOf({ task_key, attempt })
      const first = read.get(name) ?? 0
      read.set(name, first + 1)
      if (first < (shown.get(name) ?? 0)) continue
      shown.set(name, first + 1)
      yield { type: 'log', task_key, attempt, first, entries: [entry] }
    }
  }
}

interface AttemptOfTask {
  readonly task_key: string
  readonly attempt: number
}

const nameOf = ({ task_key, attempt }: AttemptOfTask): string => `${attempt} ${task_key}`

const isWanted = ({ task, attempt }: LogQuery, each: AttemptOfTask): boolean =>
  (task === undefined || task === each.task_key) && (attempt === undefined || attempt === each.attempt)
