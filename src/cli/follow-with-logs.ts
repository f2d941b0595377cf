import type { LogQuery, RunEvent, RunsApi } from '../api/run-contract.ts'

/** How many entries of each attempt have come out. */
export type LogsShown = Map<string, number>

/**
 * Everything that happens in a run until it is over, and before that what was said before this command listened. Listening begins
 * before reading, so the same words may come both ways; each comes out once, also when a run is followed from one server to the
 * next with the same `heard`.
 */
export async function* followWithLogs(
  service: RunsApi,
  runId: string,
  signal: AbortSignal,
  query: LogQuery = {},
  heard: LogsShown = new Map(),
): AsyncGenerator<RunEvent> {
  let isFirst = true
  for await (const event of service.follow(runId, signal)) {
    if (event.type !== 'log') yield event
    else if (isWanted(query, event)) {
      const known = Math.max(0, (heard.get(nameOf(event)) ?? 0) - event.first)
      if (known < event.entries.length) {
        heard.set(nameOf(event), event.first + event.entries.length)
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
      if (first < (heard.get(name) ?? 0)) continue
      heard.set(name, first + 1)
      yield { type: 'log', task_key, attempt, first, entries: [entry] }
    }
  }
}

interface AttemptOfTask {
  readonly task_key: string
  readonly attempt: number
}

const nameOf = ({ task_key, attempt }: AttemptOfTask): string => `${attempt} ${task_key}`

const isWanted = ({ task, attempt }: LogQuery, of: AttemptOfTask): boolean =>
  (task === undefined || task === of.task_key) && (attempt === undefined || attempt === of.attempt)
