import type { LastRun } from '../../../api/automation/schedule-contract.ts'
import { type RunState, runs } from '../../../domain/runs/runs.table.ts'
import type { SourceRef } from '../../../domain/runs/trigger.ts'
import type { ScheduleStateRow } from '../../../domain/schedules/schedule-state.table.ts'
import { scheduleTicks } from '../../../domain/schedules/schedule-ticks.table.ts'
import { isoOrNull } from '../../../domain/why/iso.ts'
import { quoteText } from '../../../lib/sql/sql-text.ts'
import { toIso } from '../../../lib/time.ts'
import type { Knowledge } from '../knowledge.ts'
import { publishedRows } from '../published-rows.ts'

interface Ran {
  readonly run_id: string
  readonly requested_at: number
  readonly state: RunState
}

/** The last run of each schedule, by its id, whether its cron or a user asked for it. */
export async function lastRunsOf(
  known: Knowledge,
  states: readonly Readonly<ScheduleStateRow>[],
): Promise<ReadonlyMap<string, LastRun>> {
  const newest = states.flatMap((state): [string, Ran][] => {
    const last = newestOf(known, state)
    return last === undefined ? [] : [[state.schedule_id, last]]
  })
  const sources = await sourcesOf(
    known,
    newest.map(([, { run_id }]) => run_id),
  )
  const tickOf = ({ run_id }: Ran): string | undefined => {
    const source = sources.get(run_id)
    return source?.type === 'schedule' ? source.tick_id : undefined
  }
  const ids = [...new Set(newest.flatMap(([, ran]) => tickOf(ran) ?? []))]
  const found = await known.coldRows(scheduleTicks).lookup(ids.map((id) => [id]))
  const ticks = new Map(found.flatMap((row) => (row === undefined ? [] : [[row.tick_id, row]])))
  return new Map(
    newest.map(([schedule, ran]) => {
      const tick = ticks.get(tickOf(ran) ?? '')
      return [
        schedule,
        {
          ...ran,
          requested_at: toIso(ran.requested_at),
          cause: tick?.cause ?? null,
          requested_by: tick?.requested_by ?? null,
          scheduled_for: isoOrNull(tick?.scheduled_for),
          partitions: tick?.partition_selection ?? null,
        },
      ]
    }),
  )
}

/** Unfinished runs are in memory; of those that ended, the state of the schedule has the latest. */
function newestOf(known: Knowledge, { open_runs, recent_runs }: Readonly<ScheduleStateRow>): Ran | undefined {
  const open = open_runs.flatMap((id) => known.rows().hot(runs).get(id) ?? [])
  const all: readonly Ran[] = [...open, ...recent_runs]
  const last = all.reduce<Ran | undefined>(
    (best, each) => (best === undefined || each.requested_at >= best.requested_at ? each : best),
    undefined,
  )
  return last && { run_id: last.run_id, requested_at: last.requested_at, state: last.state }
}

async function sourcesOf(known: Knowledge, runIds: readonly string[]): Promise<Map<string, SourceRef>> {
  const found = new Map<string, SourceRef>()
  const sealed: string[] = []
  for (const id of runIds) {
    const hot = known.rows().hot(runs).get(id)
    if (hot === undefined) sealed.push(id)
    else found.set(id, hot.trigger_source_ref)
  }
  if (sealed.length === 0) return found
  const where = `where run_id in (${sealed.map(quoteText).join(', ')})`
  for (const row of await publishedRows(known.sql, runs, where, ['run_id', 'trigger_source_ref']))
    found.set(row.run_id, row.trigger_source_ref)
  return found
}
