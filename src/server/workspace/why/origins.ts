import type { RequestSummary } from '../../../domain/runs/request-summary.ts'
import { isRunOver, type RunState, runStates, runs } from '../../../domain/runs/runs.table.ts'
import { evaluationOf, type SourceRef } from '../../../domain/runs/trigger.ts'
import { scheduleDefinitions } from '../../../domain/schedules/schedule-definitions.table.ts'
import { scheduleTicks } from '../../../domain/schedules/schedule-ticks.table.ts'
import { sensorDefinitions } from '../../../domain/sensors/sensor-definitions.table.ts'
import { type SensorEvalRow, sensorEvals } from '../../../domain/sensors/sensor-evals.table.ts'
import { type Askers, originOf } from '../../../domain/why/origin.ts'
import type { Reason } from '../../../domain/why/reasons.ts'
import type { TickRow } from '../../../domain/why/why-schedule.ts'
import { quoteText } from '../../../lib/sql/sql-text.ts'
import { toMs } from '../../../lib/time.ts'
import { historyIndex } from '../../../model/system-tables.ts'
import { type Knowledge, lookup } from '../knowledge.ts'
import { publishedRows } from '../published-rows.ts'

type Request = Pick<RequestSummary, 'source' | 'requested_at'>

/** As far back as reruns of reruns are followed. */
const MAX_REQUESTS = 11

/** Who asked for a run; undefined if there is no record of the run. */
export async function originOfRun(known: Knowledge, runId: string): Promise<Reason | undefined> {
  const request = await requestOf(known, runId)
  return request === undefined ? undefined : await originOfRequest(known, request)
}

/** Who made a request, with the requests behind it. */
export async function originOfRequest(known: Knowledge, request: Request): Promise<Reason> {
  const requests = new Map<string, Request>()
  const ticks = new Map<string, TickRow>()
  const evaluations = new Map<string, SensorEvalRow>()
  const load = async ({ source }: Request): Promise<void> => {
    if (source.type === 'schedule') keep(ticks, source.tick_id, await lookup(known, scheduleTicks, source.tick_id))
    const asker = evaluationOf(source)
    if (asker !== undefined) keep(evaluations, asker.eval_id, await lookup(known, sensorEvals, asker.eval_id))
  }
  await load(request)
  for (let source: SourceRef = request.source; source.type === 'rerun' && requests.size < MAX_REQUESTS; ) {
    const { run_id } = source
    const earlier = requests.has(run_id) ? undefined : await requestOf(known, run_id)
    if (earlier === undefined) break
    requests.set(run_id, earlier)
    await load(earlier)
    source = earlier.source
  }
  const rows = known.rows()
  const askers: Askers = {
    scheduleName: (id) => rows.hot(scheduleDefinitions).get(id)?.schedule_name ?? id,
    sensorName: (id) => rows.hot(sensorDefinitions).get(id)?.sensor_name ?? id,
    tick: (id) => ticks.get(id),
    evaluation: (id) => evaluations.get(id),
    request: (id) => requests.get(id),
  }
  return originOf(request.source, request.requested_at, askers)
}

function keep<V>(map: Map<string, V>, key: string, value: V | undefined): void {
  if (value !== undefined) map.set(key, value)
}

/** The request that made a run, if it is on record. */
export async function requestOf({ rows, sql }: Knowledge, runId: string): Promise<Request | undefined> {
  const hot = rows().hot(runs).get(runId)
  if (hot !== undefined) return { source: hot.trigger_source_ref, requested_at: hot.requested_at }
  const where = `where run_id = ${quoteText(runId)} limit 1`
  const [row] = await publishedRows(sql, runs, where, ['trigger_source_ref', 'requested_at'])
  return row && { source: row.trigger_source_ref, requested_at: toMs(row.requested_at) }
}

/** How far a run is, or how it ended; null if there is no record of it. */
export async function stateOfRun(known: Knowledge, runId: string): Promise<RunState | null> {
  const hot = known.rows().hot(runs).get(runId)
  if (hot !== undefined) return hot.state
  const sealed = await lookup(known, historyIndex, runs.name, runId)
  return runStates.find((state) => state === sealed?.state && isRunOver(state)) ?? null
}
