import type { RunDetail, RunQuery, RunWithAsker, WireRun } from '../../api/run-contract.ts'
import { wireRow } from '../../api/wire-row.ts'
import { runs } from '../../domain/runs/runs.table.ts'
import { evaluationOf } from '../../domain/runs/trigger.ts'
import { scheduleDefinitions } from '../../domain/schedules/schedule-definitions.table.ts'
import { sensorDefinitions } from '../../domain/sensors/sensor-definitions.table.ts'
import { taskAttempts } from '../../domain/tasks/task-attempts.table.ts'
import { tasks } from '../../domain/tasks/tasks.table.ts'
import { isServoError, ServoError } from '../../lib/error.ts'
import { quoteText } from '../../lib/sql/sql-text.ts'
import type { Rows } from '../../model/rows.ts'
import type { RecordedEnd } from '../leader/dispatch/attempt-end.ts'
import type { AttemptRef } from '../leader/logs.ts'
import type { Sql } from '../sql-rows.ts'
import { publishedRows } from './published-rows.ts'
import { usualDurations } from './usual-durations.ts'

const RUN_ID = /^run_[a-z2-7]{1,26}$/

/** Runs as they are now: unfinished ones from memory, finished ones from the published tables. */
export class RunReader {
  readonly #rows: () => Rows
  readonly #sql: Sql

  constructor(rows: () => Rows, sql: Sql) {
    this.#rows = rows
    this.#sql = sql
  }

  /** The newest first. */
  async list({ limit, state, asset, since, until }: RunQuery): Promise<RunWithAsker[]> {
    const rows = this.#rows()
    const hot = [...rows.hot(runs).all()].map((row) => wireRow(runs, row))
    const known = new Set(hot.map((run) => run.run_id))
    const hasAsset = (run: WireRun): boolean =>
      [...rows.hot(tasks).under(run.run_id)].some(({ asset_key }) => asset_key === asset)
    const isAsked = (run: WireRun): boolean =>
      (state === undefined || run.state === state) &&
      (since === undefined || run.requested_at >= since) &&
      (until === undefined || run.requested_at < until) &&
      (asset === undefined || hasAsset(run))
    const conditions = [
      state !== undefined && `state = ${quoteText(state)}`,
      since !== undefined && `requested_at >= ${quoteText(since)}::timestamptz`,
      until !== undefined && `requested_at < ${quoteText(until)}::timestamptz`,
      asset !== undefined && `run_id in (select run_id from ${tasks.name} where asset_key = ${quoteText(asset)})`,
    ].filter((one) => one !== false)
    const where = conditions.length === 0 ? '' : `where ${conditions.join(' and ')}`
    const most = Math.trunc(limit) + hot.length
    const stored = await publishedRows(this.#sql, runs, `${where} order by requested_at desc limit ${most}`)
    const all = [...hot.filter(isAsked), ...stored.filter((run) => !known.has(run.run_id))]
    const newest = all.sort((a, b) => (a.requested_at < b.requested_at ? 1 : -1)).slice(0, limit)
    return newest.map((run) => withAsker(run, rows))
  }

  /** A run by its id or by an unambiguous beginning of it. */
  async get(idOrStart: string): Promise<RunDetail> {
    const runId = await this.resolve(idOrStart)
    const rows = this.#rows()
    const hot = rows.hot(runs).get(runId)
    if (hot !== undefined) {
      return {
        run: withAsker(wireRow(runs, hot), rows),
        tasks: [...rows.hot(tasks).under(runId)].map((row) => wireRow(tasks, row)),
        attempts: [...rows.hot(taskAttempts).under(runId)].map((row) => wireRow(taskAttempts, row)),
      }
    }
    const where = `where run_id = ${quoteText(runId)}`
    const [[run], itsTasks, attempts] = await Promise.all([
      publishedRows(this.#sql, runs, where),
      publishedRows(this.#sql, tasks, `${where} order by task_key`),
      publishedRows(this.#sql, taskAttempts, `${where} order by task_key, attempt`),
    ])
    if (run === undefined) throw unknownRun(idOrStart)
    return { run: withAsker(run, rows), tasks: itsTasks, attempts }
  }

  async durations(idOrStart: string): Promise<Record<string, number>> {
    const { tasks: ofRun } = await this.get(idOrStart)
    const assets = [...new Set(ofRun.flatMap(({ asset_key }) => asset_key ?? []))]
    return assets.length === 0 ? {} : await usualDurations(this.#rows(), this.#sql, assets)
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
    const hot = this.#rows().hot(runs)
    if (hot.get(idOrStart) !== undefined) return idOrStart
    const found = new Set<string>()
    for (const { run_id } of hot.all()) if (run_id.startsWith(idOrStart)) found.add(run_id)
    const stored = `where starts_with(run_id, ${quoteText(idOrStart)}) limit 5`
    for (const { run_id } of await publishedRows(this.#sql, runs, stored, ['run_id'])) found.add(run_id)
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
