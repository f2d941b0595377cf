import type { RunDetail, RunPage, RunQuery, RunWithAsker, WireRun } from '../../api/run-contract.ts'
import { wireRow } from '../../api/wire-row.ts'
import { type RunRow, runs } from '../../domain/runs/runs.table.ts'
import { evaluationOf } from '../../domain/runs/trigger.ts'
import { scheduleDefinitions } from '../../domain/schedules/schedule-definitions.table.ts'
import { sensorDefinitions } from '../../domain/sensors/sensor-definitions.table.ts'
import { taskAttempts } from '../../domain/tasks/task-attempts.table.ts'
import { tasks } from '../../domain/tasks/tasks.table.ts'
import { comesAfter, isAsked, type ListPlace, type ListQuery } from '../../engine/history/list-history.ts'
import { isServoError, ServoError } from '../../lib/error.ts'
import { toMs } from '../../lib/time.ts'
import type { Rows } from '../../model/rows.ts'
import { historyIndex } from '../../model/system-tables.ts'
import type { RecordedEnd } from '../leader/dispatch/attempt-end.ts'
import type { AttemptRef } from '../leader/logs.ts'
import { type Knowledge, lookup } from './knowledge.ts'
import { cursorOf, placeOfCursor } from './newest-page.ts'
import { usualDurations } from './usual-durations.ts'

const RUN_ID = /^run_[a-z2-7]{0,26}$/

/** Where runs are found. */
export type RunSource = Pick<Knowledge, 'rows' | 'coldRows' | 'history'>

/** As many runs as a message can name. */
const AMBIGUOUS = 5

/** Runs as they are now: unfinished ones from memory, finished ones from history files. */
export class RunReader {
  readonly #source: RunSource

  constructor(source: RunSource) {
    this.#source = source
  }

  /** The newest first. */
  async list(query: RunQuery): Promise<readonly RunWithAsker[]> {
    return (await this.page(query)).runs
  }

  async page({ limit, cursor, status, trigger, asset, since, until }: RunQuery): Promise<RunPage> {
    const asked: ListQuery = {
      limit: limit + 1,
      after: cursor === undefined ? undefined : placeOfCursor(cursor),
      since: since === undefined ? undefined : toMs(since),
      until: until === undefined ? undefined : toMs(until),
      filters: { ...(status && { state: status }), ...(trigger && { trigger_type: trigger }), ...(asset && { assets: asset }) },
    }
    const rows = this.#source.rows()
    // Of one moment: a run that becomes history while the files are read is in memory here, and in none of these files.
    const history = this.#source.history()
    const unfinished = newest(
      [...rows.hot(runs).all()].filter((row) => isAsked(asked, placeOf(row), columnOf(row))),
      limit + 1,
    )
    const shown = unfinished.map((row) => ({ ...placeOf(row), run: wireRow(runs, row) }))
    const ended = await history.list(runs, asked)
    const found = [...shown, ...ended.map((row) => ({ ...placeOf(row), run: wireRow(runs, row) }))]
    const sorted = found.sort((a, b) => (comesAfter(a, b) ? -1 : 1))
    const last = sorted[limit - 1]
    return {
      runs: sorted.slice(0, limit).map(({ run }) => withAsker(run, rows)),
      next_cursor: last === undefined || sorted.length <= limit ? null : cursorOf({ at: last.at, id: last.id }),
    }
  }

  /** A run by its id or by an unambiguous beginning of it. */
  async get(idOrStart: string): Promise<RunDetail> {
    const runId = await this.resolve(idOrStart)
    const rows = this.#source.rows()
    const hot = rows.hot(runs).get(runId)
    if (hot !== undefined) {
      return {
        run: withAsker(wireRow(runs, hot), rows),
        tasks: [...rows.hot(tasks).under(runId)].map((row) => wireRow(tasks, row)),
        attempts: [...rows.hot(taskAttempts).under(runId)].map((row) => wireRow(taskAttempts, row)),
      }
    }
    const history = this.#source.history()
    const place = await lookup(this.#source, historyIndex, runs.name, runId)
    const [[run], itsTasks, attempts] = await Promise.all([
      history.rowsOf(runs, runId, place),
      history.rowsOf(tasks, runId, place),
      history.rowsOf(taskAttempts, runId, place),
    ])
    if (run === undefined) throw unknownRun(idOrStart)
    return {
      run: withAsker(wireRow(runs, run), rows),
      tasks: itsTasks.map((row) => wireRow(tasks, row)),
      attempts: attempts.map((row) => wireRow(taskAttempts, row)),
    }
  }

  async durations(idOrStart: string): Promise<Record<string, number>> {
    const { tasks: ofRun } = await this.get(idOrStart)
    const assets = [...new Set(ofRun.flatMap(({ asset_key }) => asset_key ?? []))]
    return assets.length === 0 ? {} : await usualDurations(this.#source, assets)
  }

  /** How an attempt ended, if it is on record. */
  async endOf({ run_id, attempt_id }: AttemptRef): Promise<RecordedEnd | undefined> {
    try {
      const { attempts } = await this.get(run_id)
      return attempts.find((row) => row.attempt_id === attempt_id)
    } catch (error) {
      if (!isServoError(error, 'not_found')) throw error
      // The run has left memory, and the table that has it is not published yet.
      throw new ServoError('unavailable', 'being_sealed', `${run_id} is being moved to history`, { hint: 'Try again.' })
    }
  }

  async resolve(idOrStart: string): Promise<string> {
    if (!RUN_ID.test(idOrStart)) throw unknownRun(idOrStart)
    const hot = this.#source.rows().hot(runs)
    const history = this.#source.history()
    const isKept = (row: { publish: number } | undefined): boolean => row !== undefined && !history.isDropped(runs, row.publish)
    if (hot.get(idOrStart) !== undefined) return idOrStart
    const found = new Set<string>()
    for (const { run_id } of hot.all()) if (run_id.startsWith(idOrStart)) found.add(run_id)
    const index = this.#source.coldRows(historyIndex)
    const [whole] = await index.lookup([[runs.name, idOrStart]])
    if (isKept(whole)) return idOrStart
    const ids = [...(await index.startingWith(runs.name, idOrStart, AMBIGUOUS))]
    const ended = await index.lookup(ids.map((id) => [runs.name, id]))
    for (const [i, row] of ended.entries()) if (isKept(row) && found.size < AMBIGUOUS) found.add(ids[i] ?? '')
    const [first, ...others] = found
    if (first === undefined) throw unknownRun(idOrStart)
    if (others.length > 0) {
      throw new ServoError('invalid', 'ambiguous_run', `several runs start with ${idOrStart}`, {
        hint: `Write more characters: ${[first, ...others].join(', ')}`,
      })
    }
    return first
  }
}

const placeOf = ({ requested_at, run_id }: RunRow): ListPlace => ({ at: requested_at, id: run_id })

const columnOf =
  (row: Readonly<Record<string, unknown>>) =>
  (column: string): unknown =>
    row[column]

const newest = (rows: RunRow[], limit: number): RunRow[] =>
  rows.sort((a, b) => (comesAfter(placeOf(a), placeOf(b)) ? -1 : 1)).slice(0, limit)

function unknownRun(id: string): ServoError {
  return new ServoError('not_found', 'no_such_run', `run ${JSON.stringify(id.slice(0, 60))} not found`, {
    hint: '`servo runs list` lists the newest runs.',
  })
}

/** A run with the name of the schedule, sensor or user that asked for it. */
function withAsker(run: WireRun, rows: Rows): RunWithAsker {
  const source = run.trigger_source_ref
  if (source.type === 'schedule') {
    const name = rows.hot(scheduleDefinitions).get(source.schedule_id)?.schedule_name ?? source.schedule_id
    return { ...run, asked_by: `schedule ${name}` }
  }
  const sensor = evaluationOf(source)?.sensor_id
  if (sensor !== undefined)
    return { ...run, asked_by: `sensor ${rows.hot(sensorDefinitions).get(sensor)?.sensor_name ?? sensor}` }
  return { ...run, asked_by: source.type === 'manual' ? source.user_id : null }
}
