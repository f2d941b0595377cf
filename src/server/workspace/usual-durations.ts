import { taskAttempts } from '../../domain/tasks/task-attempts.table.ts'
import { tasks } from '../../domain/tasks/tasks.table.ts'
import { quoteText } from '../../lib/sql/sql-text.ts'
import type { Rows } from '../../model/rows.ts'
import type { Sql } from '../sql-rows.ts'

/** As many of the newest successes of an asset as tell how long the next one takes. */
const LOOKED_AT = 20

/** How long tasks of these assets usually take, in milliseconds: the median of their newest successes. */
export async function usualDurations(rows: Rows, sql: Sql, assets: readonly string[]): Promise<Record<string, number>> {
  const newest = new Map<string, { readonly at: number; readonly ms: number }[]>(assets.map((key) => [key, []]))
  for (const { run_id, task_key, asset_key, attempt, state } of rows.hot(tasks).all()) {
    const found = newest.get(asset_key ?? '')
    const last = state === 'SUCCEEDED' ? rows.hot(taskAttempts).get(run_id, task_key, attempt) : undefined
    if (found === undefined || last?.started_at == null || last.finished_at === null) continue
    found.push({ at: last.finished_at, ms: last.finished_at - last.started_at })
  }
  for (const { asset_key, ended_ms, took_ms } of await sql(published(assets)))
    newest.get(String(asset_key))?.push({ at: Number(ended_ms), ms: Number(took_ms) })
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

/** The same run may be published and still in memory: counted twice it has the same median. */
const published = (assets: readonly string[]): string => `
  select t.asset_key, epoch_ms(a.finished_at) ended_ms, epoch_ms(a.finished_at) - epoch_ms(a.started_at) took_ms
  from ${tasks.name} t join ${taskAttempts.name} a using (run_id, task_key, attempt)
  where t.asset_key in (${assets.map(quoteText).join(', ')}) and a.outcome = 'SUCCEEDED'
    and a.started_at is not null and a.finished_at is not null
  qualify row_number() over (partition by t.asset_key order by a.finished_at desc) <= ${LOOKED_AT}`
