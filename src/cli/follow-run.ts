import type { LogQuery, RunEvent, RunsApi } from '../api/run-contract.ts'

/**
 * Everything that happens in a run until it is over, and before that what was said before anybody listened. Listening begins
 * before reading, so the same words may come both ways; each comes out once.
 */
export async function* followRun(
  service: RunsApi,
  runId: string,
  signal: AbortSignal,
  query: LogQuery = {},
): AsyncGenerator<RunEvent> {
  /** Entries that were read, by attempt. */
  const read = new Map<string, number>()
  let isFirst = true
  for await (const event of service.follow(runId, signal)) {
    if (event.type !== 'log') yield event
    else if (isWanted(query, event)) {
      const known = Math.max(0, (read.get(speaker(event)) ?? 0) - event.first)
      if (known < event.entries.length) yield { ...event, first: event.first + known, entries: event.entries.slice(known) }
    }
    if (!isFirst) continue
    isFirst = false
    for await (const { task_key, attempt, ...entry } of service.logs(runId, query)) {
      const first = read.get(speaker({ task_key, attempt })) ?? 0
      read.set(speaker({ task_key, attempt }), first + 1)
      yield { type: 'log', task_key, attempt, first, entries: [entry] }
    }
  }
}

interface Speaker {
  readonly task_key: string
  readonly attempt: number
}

const speaker = ({ task_key, attempt }: Speaker): string => `${attempt} ${task_key}`

const isWanted = ({ task, attempt }: LogQuery, of: Speaker): boolean =>
  (task === undefined || task === of.task_key) && (attempt === undefined || attempt === of.attempt)
