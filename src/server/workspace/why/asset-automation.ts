import type { AssetGraph } from '../../../domain/assets/graph.ts'
import { automationState, EVERYTHING } from '../../../domain/automation/automation-state.table.ts'
import { runs } from '../../../domain/runs/runs.table.ts'
import { cadenceIfAny } from '../../../domain/schedules/moments/cadence-if-any.ts'
import { pauseOf } from '../../../domain/schedules/regime.ts'
import { type ScheduleRow, scheduleDefinitions } from '../../../domain/schedules/schedule-definitions.table.ts'
import { scheduleState } from '../../../domain/schedules/schedule-state.table.ts'
import { selectedAssets } from '../../../domain/selection/selected-assets.ts'
import { standstillOf } from '../../../domain/sensors/evaluation/standstill.ts'
import { type SensorRow, sensorDefinitions } from '../../../domain/sensors/sensor-definitions.table.ts'
import { sensorState } from '../../../domain/sensors/sensor-state.table.ts'
import { isTaskOver, tasks } from '../../../domain/tasks/tasks.table.ts'
import { isoOrNull } from '../../../domain/why/iso.ts'
import { type Reason, reason, type WhyAnswer } from '../../../domain/why/reasons.ts'
import { standingOf } from '../../../domain/why/why-schedule.ts'
import { isServoError } from '../../../lib/error.ts'
import type { Rows } from '../../../model/rows.ts'
import type { Knowledge } from '../knowledge.ts'

/** As many schedules, sensors and runs are told, each. */
const TOLD = 5

/** Answers for a schedule or a sensor. */
export type AskAutomation = (kind: 'schedule' | 'sensor', id: string) => Promise<WhyAnswer>

/** The schedules and sensors that run an asset, each with what it did last. */
export async function automationOf(known: Knowledge, assetKey: string, ask: AskAutomation): Promise<Reason[]> {
  const { graph } = known.graph.get()
  const rows = known.rows()
  const schedules = [...rows.hot(scheduleDefinitions).all()]
    .filter(({ removed_at, asset_selection }) => removed_at === null && runsIt(graph, asset_selection, assetKey))
    .sort((a, b) => (a.schedule_name < b.schedule_name ? -1 : 1))
  const sensors = [...rows.hot(sensorDefinitions).all()]
    .filter(({ removed_at, asset_selection }) => removed_at === null && runsIt(graph, asset_selection, assetKey))
    .sort((a, b) => (a.sensor_name < b.sensor_name ? -1 : 1))
  const found: Reason[] = []
  for (const schedule of schedules.slice(0, TOLD)) found.push(await bySchedule(known, schedule, ask))
  // A sensor that names no assets may ask for any: what it did last says nothing of this one.
  const own = sensors.filter(({ asset_selection }) => asset_selection.length > 0)
  const any = sensors.filter(({ asset_selection }) => asset_selection.length === 0).map(({ sensor_name }) => sensor_name)
  for (const sensor of own.slice(0, TOLD)) found.push(await bySensor(rows, sensor, ask))
  if (any.length > 0) found.push(reason('run_by_any_sensor', { sensors: any.slice(0, TOLD), count: any.length }))
  const more = Math.max(0, schedules.length - TOLD) + Math.max(0, own.length - TOLD)
  found.push(...notRecorded(known, graph, assetKey).slice(0, TOLD))
  if (more > 0) found.push(reason('more_automation', { count: more }))
  return found.length === 0 ? [reason('nothing_automates', {})] : found
}

/** What the code declares and no server has recorded: without a server only the assets of the code are known. */
function notRecorded(known: Knowledge, graph: AssetGraph, assetKey: string): Reason[] {
  const { schedules = [], sensors = [] } = known.project ?? {}
  const rows = known.rows()
  const there = (row: { readonly removed_at: number | null }): boolean => row.removed_at === null
  const ofSchedules = new Set([...rows.hot(scheduleDefinitions).all()].filter(there).map((row) => row.schedule_name))
  const ofSensors = new Set([...rows.hot(sensorDefinitions).all()].filter(there).map((row) => row.sensor_name))
  return [
    ...schedules.filter(({ name }) => !ofSchedules.has(name)).map((declared) => ({ kind: 'schedule' as const, ...declared })),
    ...sensors.filter(({ name }) => !ofSensors.has(name)).map((declared) => ({ kind: 'sensor' as const, ...declared })),
  ]
    .filter(({ asset_selection }) => runsIt(graph, asset_selection, assetKey))
    .map(({ kind, name }) => reason('not_recorded', { kind, name }))
}

/** A sensor that selects nothing may run anything. A selection that means nothing any more runs nothing. */
function runsIt(graph: AssetGraph, selection: readonly string[], assetKey: string): boolean {
  try {
    return selectedAssets(graph, selection).includes(assetKey)
  } catch (error) {
    if (isServoError(error)) return false
    throw error
  }
}

async function bySchedule(known: Knowledge, definition: Readonly<ScheduleRow>, ask: AskAutomation): Promise<Reason> {
  const { schedule_id, schedule_name: schedule } = definition
  const rows = known.rows()
  const pause = pauseOf(rows, rows.hot(scheduleState).get(schedule_id))
  const status = standingOf({ definition, pause }) === undefined ? 'active' : 'standing'
  const { at, verdict, because } = await ask('schedule', schedule_id)
  const next = status === 'active' ? isoOrNull(cadenceIfAny(definition)?.after(known.now())) : null
  const told = because.filter(({ code }) => !AROUND.has(code))
  const last = at === null ? told : [reason('last_tick', { at, verdict }, told)]
  return reason('run_by_schedule', { schedule, status, next }, last)
}

async function bySensor(rows: Rows, definition: Readonly<SensorRow>, ask: AskAutomation): Promise<Reason> {
  const { sensor_id, sensor_name: sensor } = definition
  const everything = rows.hot(automationState).get(EVERYTHING)
  const standstill = standstillOf({ definition, state: rows.hot(sensorState).get(sensor_id), everything })
  const { because } = await ask('sensor', sensor_id)
  return reason('run_by_sensor', { sensor, status: standstill === undefined ? 'active' : 'standing' }, because.slice(0, 1))
}

/** Unfinished runs that make a partition of an asset, or that may once they are planned. */
export function underWay(known: Knowledge, assetKey: string, partition: string | null): Reason[] {
  const rows = known.rows()
  const { graph } = known.graph.get()
  const found: Reason[] = []
  for (const run of rows.hot(runs).all()) {
    if (found.length >= TOLD) break
    if (run.finished_at !== null) continue
    const { run_id } = run
    if (run.plan_parts === 0) {
      if (runsIt(graph, run.asset_selection, assetKey)) found.push(reason('in_requested_run', { run_id }))
      continue
    }
    for (const { asset_key, partition_key, partition_keys, task_key, state } of rows.hot(tasks).under(run_id)) {
      if (asset_key !== assetKey || isTaskOver(state)) continue
      if (partition !== null && partition_key !== partition && !partition_keys?.includes(partition)) continue
      found.push(reason('in_run', { run_id, task_key, state }))
      break
    }
  }
  return found
}

/** What the answer about a schedule says beside why it ran or did not. */
const AROUND: ReadonlySet<string> = new Set(['next_tick', 'no_next_tick', 'resume_with'])
