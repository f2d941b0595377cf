import { runs } from '../../domain/runs/runs.table.ts'
import { taskAttempts } from '../../domain/tasks/task-attempts.table.ts'
import { tasks } from '../../domain/tasks/tasks.table.ts'
import type { State } from '../../engine/fold/state.ts'
import { ServoError } from '../../lib/error.ts'
import type { AnyRow } from '../../model/table.ts'
import type { Sql } from './sql-rows.ts'
import { wireRow } from './wire.ts'

export interface RunDetail {
  readonly run: AnyRow
  readonly tasks: readonly AnyRow[]
  readonly attempts: readonly AnyRow[]
}

export interface RunQuery {
  readonly limit?: number
  /** Only runs in this state. */
  readonly state?: string
}

const RUN_ID = /^run_[a-z2-7]{1,26}$/

/** Runs as they are now: unfinished ones from memory, finished ones from the published tables. */
export class RunReader {
  readonly #state: () => State
  readonly #sql: Sql

  constructor(state: () => State, sql: Sql) {
    this.#state = state
    this.#sql = sql
  }

  /** The newest first. */
  async list({ limit = 20, state }: RunQuery = {}): Promise<AnyRow[]> {
    const hot = [...this.#state().hotTable(runs).all()].map((row) => wireRow(runs, row))
    const known = new Set(hot.map((run) => run['run_id']))
    const where = state === undefined ? '' : `where state = ${quoted(state)}`
    const stored = await this.#sql(
      `select * from runs ${where} order by requested_at desc limit ${Math.trunc(limit) + hot.length}`,
    )
    const all = [
      ...hot.filter((run) => state === undefined || run['state'] === state),
      ...stored.filter((run) => !known.has(run['run_id'])),
    ]
    return all.sort((a, b) => (a['requested_at'] < b['requested_at'] ? 1 : -1)).slice(0, limit)
  }

  /** A run by its id, or by the beginning of one that no other shares. */
  async get(idOrStart: string): Promise<RunDetail> {
    const runId = await this.resolve(idOrStart)
    const state = this.#state()
    const hot = state.hotTable(runs).get(runId)
    if (hot !== undefined) {
      return {
        run: wireRow(runs, hot),
        tasks: [...state.hotTable(tasks).under(runId)].map((row) => wireRow(tasks, row)),
        attempts: [...state.hotTable(taskAttempts).under(runId)].map((row) => wireRow(taskAttempts, row)),
      }
    }
    const where = `where run_id = ${quoted(runId)}`
    const [[run], itsTasks, attempts] = await Promise.all([
      this.#sql(`select * from runs ${where}`),
      this.#sql(`select * from tasks ${where} order by task_key`),
      this.#sql(`select * from task_attempts ${where} order by task_key, attempt`),
    ])
    if (run === undefined) throw unknownRun(idOrStart)
    return { run, tasks: itsTasks, attempts }
  }

  async resolve(idOrStart: string): Promise<string> {
    if (!RUN_ID.test(idOrStart)) throw unknownRun(idOrStart)
    const state = this.#state()
    if (state.hotTable(runs).get(idOrStart) !== undefined) return idOrStart
    const found = new Set<string>()
    for (const row of state.hotTable(runs).all())
      if (String(row['run_id']).startsWith(idOrStart)) found.add(String(row['run_id']))
    for (const row of await this.#sql(`select run_id from runs where starts_with(run_id, ${quoted(idOrStart)}) limit 5`)) {
      found.add(String(row['run_id']))
    }
    const [first, ...others] = found
    if (first === undefined) throw unknownRun(idOrStart)
    if (others.length > 0) {
      throw new ServoError('invalid', 'ambiguous_run', `${idOrStart} is the beginning of several runs`, {
        hint: `Write more of it: ${[first, ...others].join(', ')}`,
      })
    }
    return first
  }
}

const quoted = (text: string): string => `'${text.replaceAll("'", "''")}'`

function unknownRun(id: string): ServoError {
  return new ServoError('not_found', 'no_such_run', `there is no run ${JSON.stringify(id.slice(0, 60))}`, {
    hint: 'servo runs list shows the newest.',
  })
}
