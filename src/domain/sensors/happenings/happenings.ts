import type { Rows } from '../../../model/rows.ts'
import type { RunRow } from '../../runs/runs.table.ts'
import { chainOf, evaluationOf } from '../../runs/trigger.ts'
import { type TaskRow, tasks } from '../../tasks/tasks.table.ts'
import { editKnown, raiseVersion } from '../../typed-rows.ts'
import { editSensorState } from '../edit-sensor-state.ts'
import { idPart } from '../evaluation-ids.ts'
import { MAX_HAPPENINGS } from '../limits.ts'
import type { SensorStateRow } from '../sensor-state.table.ts'
import { type HappeningFacts, type SensorHappeningRow, sensorHappenings } from './sensor-happenings.table.ts'
import { isNothingWatched, watchersOf } from './watches.ts'

/** Finding the oldest means reading all, so that it is done once for so many. */
const DROPPED_AT_ONCE = 100

interface News {
  readonly messageId: string
  readonly happening: HappeningFacts
  readonly at: number
  readonly eventId: string
  /** The sensor that asked for the run, if one did: it is not told, or it would react to itself for ever. */
  readonly asker?: string | undefined
  /** How many runs in a row sensors have asked for. */
  readonly chain?: number
}

const causeOf = ({ trigger_source_ref: source }: Readonly<RunRow>): Pick<News, 'asker' | 'chain'> => ({
  asker: evaluationOf(source)?.sensor_id,
  chain: chainOf(source),
})

interface TaskEnd {
  readonly attempt: number
  readonly outcome: string
  readonly output?: unknown
  readonly at: number
  readonly eventId: string
}

/** Tells sensors what a task came to, once it has ended: a check that fails in an attempt that is retried is no news yet. */
export function noteTaskEnd(rows: Rows, run: Readonly<RunRow>, task: Readonly<TaskRow>, end: TaskEnd): void {
  const { asset_key, run_id } = task
  if (asset_key === null || end.outcome === 'CANCELLED' || isNothingWatched(rows)) return
  const failed = failedChecks(end.output)
  const types = [
    ...(end.outcome === 'SUCCEEDED' ? (['materialized'] as const) : []),
    ...(failed === undefined ? [] : (['check_failed'] as const)),
  ]
  for (const type of types) {
    const watchers = watchersOf(rows, 'asset', [asset_key], type)
    if (watchers.size === 0) continue
    for (const partition_key of task.partition_keys ?? [task.partition_key]) {
      const facts = { asset_key, partition_key, run_id }
      const parts = [idPart(task.task_key), end.attempt, ...(task.partition_keys ? [idPart(partition_key ?? '')] : [])]
      const happening: HappeningFacts =
        type === 'check_failed' && failed !== undefined ? { type, ...failed, ...facts } : { type: 'materialized', ...facts }
      const { at, eventId } = end
      tell(rows, watchers, {
        messageId: `${type}:${run_id}:${parts.join(':')}`,
        happening,
        at,
        eventId,
        ...causeOf(run),
      })
    }
  }
}

/** A materialization that something outside Servo reported. */
export function noteReport(
  rows: Rows,
  report: { readonly report_id: string; readonly asset_key: string; readonly partition_key: string },
  { at, eventId }: { readonly at: number; readonly eventId: string },
): void {
  if (isNothingWatched(rows)) return
  const { asset_key, report_id } = report
  const partition_key = report.partition_key === '' ? null : report.partition_key
  const happening: HappeningFacts = { type: 'materialized', asset_key, partition_key, run_id: null }
  const messageId = `materialized:report:${idPart(report_id)}`
  tell(rows, watchersOf(rows, 'asset', [asset_key], 'materialized'), { messageId, happening, at, eventId })
}

/** Tells sensors that a run has ended. A run has the assets of its tasks, and the assets that were asked for by key. */
export function noteRunEnd(rows: Rows, run: Readonly<RunRow>): void {
  const { run_id, state, labels, asset_selection, finished_at } = run
  if (state === 'PENDING' || state === 'RUNNING' || isNothingWatched(rows)) return
  const assets = new Set(asset_selection)
  for (const { asset_key } of rows.hot(tasks).under(run_id)) if (asset_key !== null) assets.add(asset_key)
  const at = finished_at ?? run.requested_at
  tell(rows, watchersOf(rows, 'run', assets, state), {
    messageId: `run:${run_id}:${state}`,
    happening: { type: 'run', run_id, state, asset_selection, labels },
    at,
    eventId: run.row_version,
    ...causeOf(run),
  })
}

function tell(rows: Rows, watchers: ReadonlySet<string>, { messageId, happening, at, eventId, asker, chain = 0 }: News): void {
  for (const sensor_id of watchers) {
    if (sensor_id === asker || rows.hot(sensorHappenings).get(sensor_id, messageId) !== undefined) continue
    const state = editSensorState(rows, sensor_id, eventId)
    if (state.happenings_waiting >= MAX_HAPPENINGS) dropOldest(rows, state, at)
    rows.hot(sensorHappenings).insert({
      sensor_id,
      message_id: messageId,
      happening,
      happened_at: at,
      chain: chain === 0 ? null : chain,
      dead: false,
      row_version: eventId,
    })
    state.happenings_waiting += 1
  }
}

/** A sensor that is far behind keeps what is new: its state says how much it has lost, and when it last did. */
function dropOldest(rows: Rows, state: SensorStateRow, at: number): void {
  const oldest = [...rows.hot(sensorHappenings).under(state.sensor_id)].sort(byAge).slice(0, DROPPED_AT_ONCE)
  for (const { sensor_id, message_id } of oldest) rows.hot(sensorHappenings).remove(sensor_id, message_id)
  state.happenings_waiting -= oldest.length
  state.happenings_dropped += oldest.length
  state.happenings_dropped_at = Math.max(state.happenings_dropped_at ?? 0, at)
}

/** The order in which a sensor gets its happenings. */
export const byAge = (a: Readonly<SensorHappeningRow>, b: Readonly<SensorHappeningRow>): number =>
  a.happened_at - b.happened_at || (a.message_id < b.message_id ? -1 : 1)

/** An evaluation of the message was accepted: nothing waits any more. */
export function settleHappening(rows: Rows, sensorId: string, messageId: string, eventId: string): void {
  if (rows.hot(sensorHappenings).get(sensorId, messageId) === undefined) return
  rows.hot(sensorHappenings).remove(sensorId, messageId)
  editSensorState(rows, sensorId, eventId).happenings_waiting -= 1
}

/** It failed too often, or a user lets it be tried again: what a user asks for begins the count of runs in a row anew. */
export function markHappening(
  rows: Rows,
  sensorId: string,
  messageId: string,
  change: { dead: boolean; eventId: string },
): void {
  if (rows.hot(sensorHappenings).get(sensorId, messageId) === undefined) return
  const row = editKnown(rows.hot(sensorHappenings), sensorId, messageId)
  row.dead = change.dead
  if (!change.dead) row.chain = null
  raiseVersion(row, change.eventId)
}

/** A sensor that stops watching hears nothing of the past when it begins again. */
export function forgetHappenings(rows: Rows, sensorId: string, eventId: string): void {
  const waiting = [...rows.hot(sensorHappenings).under(sensorId)]
  if (waiting.length === 0) return
  for (const { message_id } of waiting) rows.hot(sensorHappenings).remove(sensorId, message_id)
  editSensorState(rows, sensorId, eventId).happenings_waiting = 0
}

/** The names of the checks that failed, and the worst severity among them. Outputs are stored as any worker reported them. */
export function failedChecks(output: unknown): { checks: string[]; severity: 'error' | 'warn' } | undefined {
  const reported = typeof output === 'object' && output !== null && 'checks' in output ? output.checks : undefined
  if (!Array.isArray(reported)) return undefined
  const failed = reported.filter((check) => typeof check?.name === 'string' && check.ok === false)
  if (failed.length === 0) return undefined
  return {
    checks: failed.map((check): string => check.name),
    severity: failed.some((check) => check.severity === 'error') ? 'error' : 'warn',
  }
}
