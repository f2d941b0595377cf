import { runs } from '../../domain/runs/runs.table.ts'
import { taskAttempts } from '../../domain/tasks/task-attempts.table.ts'
import { type TaskRow, tasks } from '../../domain/tasks/tasks.table.ts'
import { historyIndex } from '../../model/system-tables.ts'
import type { Row } from '../../model/table.ts'
import type { RunSource } from './run-reader.ts'

/** As many of the newest successes of an asset as tell how long the next one takes. */
const LOOKED_AT = 20
/** A run of many assets that are seldom made together: some of them then have fewer successes to go by, or none. */
const MOST_RUNS = 100

interface Success {
  readonly at: number
  readonly ms: number
}

/** How long tasks of these assets usually take, in milliseconds: the median of the successes in the newest runs that made them. */
export async function usualDurations(source: RunSource, assets: readonly string[]): Promise<Record<string, number>> {
  const newest = new Map<string, Success[]>(assets.map((key) => [key, []]))
  const note = (task: TaskRow, last: Row<typeof taskAttempts> | undefined): void => {
    if (task.state !== 'SUCCEEDED' || last?.started_at == null || last.finished_at === null) return
    newest.get(task.asset_key ?? '')?.push({ at: last.finished_at, ms: last.finished_at - last.started_at })
  }
  const rows = source.rows()
  // Of one moment with the rows in memory: no run is counted twice, and none is missed.
  const history = source.history()
  for (const task of rows.hot(tasks).all()) note(task, rows.hot(taskAttempts).get(task.run_id, task.task_key, task.attempt))

  const read = new Set<string>()
  for (const [asset, found] of newest) {
    if (found.length >= LOOKED_AT || read.size >= MOST_RUNS) continue
    const made = await history.list(runs, { limit: LOOKED_AT, filters: { assets: asset } })
    const ids = made.map(({ run_id }) => run_id).filter((id) => !read.has(id))
    const places = await source.coldRows(historyIndex).lookup(ids.map((id) => [runs.name, id]))
    for (const [i, id] of ids.entries()) {
      if (found.length >= LOOKED_AT || read.size >= MOST_RUNS) break
      read.add(id)
      const attempts = await history.rowsOf(taskAttempts, id, places[i])
      const last = new Map(attempts.map((attempt) => [`${attempt.attempt} ${attempt.task_key}`, attempt]))
      for (const task of await history.rowsOf(tasks, id, places[i])) note(task, last.get(`${task.attempt} ${task.task_key}`))
    }
  }
  const usual: Record<string, number> = {}
  for (const [key, found] of newest) {
    const times = found
      .sort((a, b) => b.at - a.at)
      .slice(0, LOOKED_AT)
      .map(({ ms }) => Math.max(0, ms))
      .sort((a, b) => a - b)
    const median = times[times.length >> 1]
    if (median !== undefined) usual[key] = median
  }
  return usual
}
