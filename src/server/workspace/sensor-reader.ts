import {
  type DeadLetterPage,
  type DeadLetterQuery,
  type EvalPage,
  type EvalQuery,
  type SensorDetail,
  type SensorListQuery,
  type SensorPage,
  SHOWN_RUNS,
  type WireEval,
} from '../../api/automation/sensor-contract.ts'
import { wireRow } from '../../api/wire-row.ts'
import type { Deliveries, RunOfEvaluation } from '../../contract/delivery.ts'
import { automationState, EVERYTHING } from '../../domain/automation/automation-state.table.ts'
import { runKeyIndex } from '../../domain/runs/run-key-index.table.ts'
import { pausedText } from '../../domain/schedules/deciding/due.ts'
import { nextPollFrom } from '../../domain/sensors/evaluation/poll-due.ts'
import { idsOfRuns, runsOfEvaluation } from '../../domain/sensors/evaluation/runs-of-evaluation.ts'
import { type Standstill, standstillOf, type WatchedSensor } from '../../domain/sensors/evaluation/standstill.ts'
import { type SensorRow, sensorDefinitions } from '../../domain/sensors/sensor-definitions.table.ts'
import { type SensorEvalRow, sensorEvals } from '../../domain/sensors/sensor-evals.table.ts'
import { sensorMessages } from '../../domain/sensors/sensor-messages.table.ts'
import { type SensorStateRow, sensorState } from '../../domain/sensors/sensor-state.table.ts'
import { waitingText } from '../../domain/why/words-automation.ts'
import { ServoError } from '../../lib/error.ts'
import { nearest } from '../../lib/nearest.ts'
import { quoteText } from '../../lib/sql/sql-text.ts'
import { toIso } from '../../lib/time.ts'
import { type Knowledge, lookup } from './knowledge.ts'
import { newestPage } from './newest-page.ts'
import { pageOf } from './page.ts'
import { addressOf, type Senders, senderFacts } from './senders.ts'
import { refusedTransition } from './state-version.ts'

/** Sensors as they are now, their evaluations and their dead letters. */
export class SensorReader {
  readonly #known: Knowledge
  readonly #deliveries: Deliveries | undefined
  readonly #senders: Senders | undefined
  readonly #outage: () => string | undefined

  constructor(
    known: Knowledge,
    {
      deliveries,
      senders,
      outage = () => undefined,
    }: { deliveries?: Deliveries | undefined; senders?: Senders | undefined; outage?: (() => string | undefined) | undefined },
  ) {
    this.#known = known
    this.#deliveries = deliveries
    this.#senders = senders
    this.#outage = outage
  }

  async list(query: SensorListQuery): Promise<SensorPage> {
    const all = [...this.#known.rows().hot(sensorDefinitions).all()].filter((row) => row.removed_at === null)
    const { status } = query
    const rows = status === undefined ? all : all.filter((row) => this.#detailOf(row).status === status)
    const byName = new Map(rows.map((row) => [`${row.sensor_name}\n${row.sensor_id}`, row]))
    const { names, next_cursor } = pageOf([...byName.keys()].sort(), query)
    const sensors = names.flatMap((name) => {
      const row = byName.get(name)
      return row === undefined ? [] : [this.#detailOf(row)]
    })
    return { sensors, next_cursor }
  }

  async get(idOrName: string): Promise<SensorDetail> {
    const row = this.find(idOrName)
    const { last_eval_id } = this.stateOf(row) ?? {}
    const last = last_eval_id == null ? undefined : await lookup(this.#known, sensorEvals, last_eval_id)
    const [last_eval = null] = await this.#withRuns(last === undefined ? [] : [last])
    return { ...this.#detailOf(row), last_eval }
  }

  /** The sensor of this id or name, which must exist. Of several that had the name, the one that has it counts. */
  find(idOrName: string): Readonly<SensorRow> {
    const all = this.#known.rows().hot(sensorDefinitions)
    const byId = all.get(idOrName)
    if (byId !== undefined) return byId
    const named = [...all.all()].filter((row) => row.sensor_name === idOrName)
    const found = named.find((row) => row.removed_at === null) ?? named.sort((a, b) => b.defined_at - a.defined_at)[0]
    if (found !== undefined) return found
    const meant = nearest(
      idOrName,
      [...all.all()].map((row) => row.sensor_name),
    )
    throw new ServoError('not_found', 'no_such_sensor', `sensor ${JSON.stringify(idOrName.slice(0, 255))} not found`, {
      hint:
        meant === undefined
          ? '`servo sensors list` lists all sensors. Those that the project declares are on record once servo dev has started.'
          : `Did you mean ${meant}?`,
    })
  }

  /** The sensor of this id or name, for a change that one that was removed refuses. */
  present(row: Readonly<SensorRow>, requested: string): Readonly<SensorRow> {
    if (row.removed_at === null) return row
    throw refusedTransition('sensor_removed', `${row.sensor_name} was removed at ${toIso(row.removed_at)}`, {
      current: 'removed',
      requested,
      hint: 'Its history is kept. Declare it again to use it.',
    })
  }

  stateOf({ sensor_id }: Readonly<SensorRow>): Readonly<SensorStateRow> | undefined {
    return this.#known.rows().hot(sensorState).get(sensor_id)
  }

  /** Why the sensor is not evaluated; undefined if it is. */
  standstillOf(definition: Readonly<SensorRow>): Standstill | undefined {
    return standstillOf(this.#watched(definition))
  }

  #watched(definition: Readonly<SensorRow>): WatchedSensor {
    const everything = this.#known.rows().hot(automationState).get(EVERYTHING)
    return { definition, state: this.stateOf(definition), everything }
  }

  #detailOf(definition: Readonly<SensorRow>): Omit<SensorDetail, 'last_eval'> {
    const watched = this.#watched(definition)
    const { state } = watched
    const standstill = standstillOf(watched)
    return {
      definition: wireRow(sensorDefinitions, definition),
      state: state === undefined ? null : wireRow(sensorState, state),
      ...statusOf(standstill, state, definition.has_code ? this.#outage() : undefined),
      next_poll_at: this.#nextPoll(watched),
      unrecorded_polls: this.#unrecorded(definition.sensor_id),
      address: addressOf(this.#known.scope, definition),
      senders: (this.#senders && senderFacts(definition, this.#known.scope, this.#senders)) ?? null,
    }
  }

  #nextPoll(watched: WatchedSensor): string | null {
    const now = this.#known.now()
    const polledAt = this.#deliveries?.polledAt?.(watched.definition.sensor_id)
    const next = nextPollFrom({ ...watched, polledAt, now })
    return next === undefined ? null : toIso(next)
  }

  #unrecorded(sensorId: string): SensorDetail['unrecorded_polls'] {
    const polls = this.#deliveries?.unrecordedPolls?.(sensorId)
    return polls === undefined ? null : { count: polls.poll_count, first: toIso(polls.first), last: toIso(polls.last) }
  }

  async evals(idOrName: string, { status, ...query }: EvalQuery): Promise<EvalPage> {
    const { sensor_id } = this.find(idOrName)
    const list = {
      table: sensorEvals,
      at: 'evaluated_at',
      id: 'eval_id',
      placeOf: (row: Readonly<SensorEvalRow>) => ({ at: row.evaluated_at, id: row.eval_id }),
      keyOf: (id: string) => [id],
      owns: (row: Readonly<SensorEvalRow>) => row.sensor_id === sensor_id,
      has: (row: Readonly<SensorEvalRow>) => status === undefined || row.status === status,
      where: [`sensor_id = ${quoteText(sensor_id)}`, ...(status === undefined ? [] : [`status = ${quoteText(status)}`])],
    } as const
    const { rows, next_cursor } = await newestPage(this.#known, list, query)
    return { evals: await this.#withRuns(rows), next_cursor }
  }

  async deadLetters(idOrName: string, { status, ...query }: DeadLetterQuery): Promise<DeadLetterPage> {
    const { sensor_id } = this.find(idOrName)
    const isAll = status === 'all'
    // A message that has tries left is not dead since any moment.
    const at = isAll ? 'first_seen_at' : 'dead_since'
    const { rows, next_cursor } = await newestPage(
      this.#known,
      {
        table: sensorMessages,
        at,
        id: 'message_id',
        placeOf: (row) => ({ at: row[at], id: row.message_id }),
        keyOf: (id) => [sensor_id, id],
        owns: (row) => row.sensor_id === sensor_id,
        has: (row) => row.status === 'dead' || (isAll && row.status === 'failing'),
        where: [`sensor_id = ${quoteText(sensor_id)}`, isAll ? `status <> 'accepted'` : `status = 'dead'`],
      },
      query,
    )
    return { dead_letters: rows.map((row) => wireRow(sensorMessages, row)), next_cursor }
  }

  /** What became of the runs that evaluations asked for. */
  async runsOf(rows: readonly Readonly<SensorEvalRow>[]): Promise<RunOfEvaluation[][]> {
    const keys = new Set(rows.flatMap((row) => (row.accepted ? row.run_keys : [])))
    const made = await this.#known.coldRows(runKeyIndex).lookup([...keys].map((key) => [key]))
    const byKey = new Map(made.flatMap((row) => (row === undefined ? [] : [[row.run_key, row]])))
    return rows.map((row) => runsOfEvaluation(row, (key) => byKey.get(key)))
  }

  async #withRuns(rows: readonly Readonly<SensorEvalRow>[]): Promise<WireEval[]> {
    const all = await this.runsOf(rows.map((row) => ({ ...row, run_keys: row.run_keys.slice(0, SHOWN_RUNS) })))
    return rows.map((row, index) => {
      const runs = all[index] ?? []
      return { ...wireRow(sensorEvals, row), run_ids: idsOfRuns(runs), runs }
    })
  }
}

function statusOf(
  standstill: Standstill | undefined,
  state: Readonly<SensorStateRow> | undefined,
  outage: string | undefined,
): Pick<SensorDetail, 'status' | 'status_reason'> {
  if (standstill === undefined) {
    const waits = outage === undefined ? null : waitingText(outage)
    if (state?.status !== 'ERROR') return { status: 'active', status_reason: waits }
    if (waits !== null) return { status: 'error', status_reason: waits }
    const { consecutive_errors: errors } = state
    return {
      status: 'error',
      status_reason: errors === 1 ? 'its last evaluation failed' : `its last ${errors} evaluations failed`,
    }
  }
  const { code, since, by, reason } = standstill
  if (code === 'removed' || code === 'disabled') return { status: code, status_reason: null }
  const everything = code === 'automation_paused'
  return { status: 'paused', status_reason: pausedText({ since: since ?? 0, at: since, by, reason, everything }) }
}
