import type { RunOfEvaluation } from '../../../contract/delivery.ts'
import type { AskedRun, EvaluationReport, EvaluationRequest, Evaluator } from '../../../contract/evaluation.ts'
import { automationState, EVERYTHING } from '../../../domain/automation/automation-state.table.ts'
import type { RequestRun } from '../../../domain/automation/request-run.ts'
import { turnOfReported } from '../../../domain/partitions/dynamic-keys.ts'
import { runKeyIndex } from '../../../domain/runs/run-key-index.table.ts'
import {
  type EvaluatedSource,
  type EvaluationResult,
  type EvaluationToRecord,
  evaluationEvents,
} from '../../../domain/sensors/evaluation/evaluation-events.ts'
import { idsOfRuns, runsOfEvaluation } from '../../../domain/sensors/evaluation/runs-of-evaluation.ts'
import type { WatchedSensor } from '../../../domain/sensors/evaluation/standstill.ts'
import { evalIdOf, runKeyOfEvaluation } from '../../../domain/sensors/evaluation-ids.ts'
import { type SensorRow, sensorDefinitions } from '../../../domain/sensors/sensor-definitions.table.ts'
import { type SensorEvalRow, sensorEvals } from '../../../domain/sensors/sensor-evals.table.ts'
import { SensorEvaluated } from '../../../domain/sensors/sensor-evaluated.event.ts'
import { sensorState } from '../../../domain/sensors/sensor-state.table.ts'
import type { Submitted } from '../../../engine/loop/loop.ts'
import { assert } from '../../../lib/assert.ts'
import { isServoError, ServoError } from '../../../lib/error.ts'
import type { NewEvent } from '../../../model/event.ts'
import type { AlarmClock } from '../../../ports/clock.ts'
import type { CurrentGraph } from '../current-graph.ts'
import { type KnownRows, lookup } from '../known-rows.ts'
import { runsOfKeys } from '../runs-of-keys.ts'

/** An evaluation that is on record. */
export interface RecordedEvaluation {
  readonly sensor: Readonly<SensorRow>
  readonly evaluation: Readonly<SensorEvalRow>
  /** The runs of its keys, which another evaluation may have made. */
  readonly run_ids: readonly string[]
  readonly runs: readonly RunOfEvaluation[]
  /** When its message was published, if its sender says so. */
  readonly published_at?: string | null | undefined
  /** The trace of the sender, if it has one. */
  readonly traceparent?: string | undefined
}

export interface EvaluationsOptions {
  readonly clock: AlarmClock
  readonly evaluator: Evaluator
  readonly known: KnownRows
  readonly graph: () => CurrentGraph
  readonly requestRun: RequestRun
  readonly mintId: () => string
  readonly submit: (events: readonly NewEvent[]) => Promise<Submitted>
  /** Called with each evaluation, once it is durable. */
  readonly onEvaluated?: ((evaluated: RecordedEvaluation) => void) | undefined
}

/** What was evaluated, and what it is recorded with. */
export interface Evaluated extends Pick<EvaluationToRecord, 'definition' | 'begun' | 'result' | 'chain' | 'traceparent'> {
  readonly source: EvaluatedSource
  readonly duration_ms: number
  readonly requested_by?: string | undefined
  readonly published_at?: string | null | undefined
  /** Facts that are written in front of it. */
  readonly before?: readonly NewEvent[]
}

/** Lets workers evaluate sensors, and records what they say. */
export class Evaluations {
  readonly #options: EvaluationsOptions
  #isClosed = false
  #running = 0

  constructor(options: EvaluationsOptions) {
    this.#options = options
  }

  /** How many evaluations workers have now. */
  get running(): number {
    return this.#running
  }

  /** A sensor, and all that decides whether it is evaluated. */
  watched(sensorId: string): WatchedSensor {
    const rows = this.#options.known.rows()
    const definition = rows.hot(sensorDefinitions).get(sensorId)
    if (definition === undefined)
      throw new ServoError('not_found', 'no_such_sensor', `sensor ${sensorId} not found`, { hint: 'servo sensors list' })
    const state = rows.hot(sensorState).get(sensorId)
    return {
      definition: { ...definition },
      state: state && { ...state },
      everything: rows.hot(automationState).get(EVERYTHING),
    }
  }

  /** Asks a worker. Throws `unavailable` if it was not allowed to end: then nothing is known, and nothing must be recorded. */
  async evaluate(request: EvaluationRequest): Promise<{ result: EvaluationResult; duration_ms: number }> {
    const { clock, evaluator } = this.#options
    const began = clock.monotonic()
    this.#running += 1
    const report = await evaluator.evaluate(request).finally(() => {
      this.#running -= 1
    })
    if (report.outcome === 'unavailable') throw notEvaluated(report.reason)
    const result = resultOf(report)
    if (result === undefined || this.#isClosed) throw ended()
    return { result, duration_ms: Math.max(0, Math.round(clock.monotonic() - began)) }
  }

  /** What would be reported of this result: an error if it could not count. */
  async checked(evaluated: Evaluated): Promise<EvaluationReport> {
    const { result } = evaluated
    if ('timedOut' in result) return { outcome: 'timed_out' }
    const [evaluation, ...requests] = await this.#eventsOf(evaluated)
    const parsed = SensorEvaluated.parse(evaluation?.payload)
    const wrong = [parsed, ...requests.map(({ definition, payload }) => definition.parse(payload))].find((one) => !one.success)
    if (wrong?.success === false) return { outcome: 'error', error: wrong.error.message }
    if ('error' in result || (parsed.success && parsed.data.status === 'error'))
      return { outcome: 'error', error: (parsed.success && parsed.data.error) || 'no reason was given' }
    return { outcome: 'requests', ...result }
  }

  /** Writes an evaluation with the runs that it asks for, and returns what the fold made of it. */
  async record(evaluated: Evaluated): Promise<RecordedEvaluation> {
    const { definition: sensor, source, begun, published_at, traceparent, before = [] } = evaluated
    try {
      await this.#options.submit([...before, ...(await this.#eventsOf(evaluated))])
    } catch (error) {
      // Nothing was written. What the code returned fits into no event, and that is its mistake and not the caller's.
      if (!isServoError(error, 'invalid') || 'error' in evaluated.result) throw error
      return await this.record({ ...evaluated, result: { error: error.message } })
    }
    const evaluation = await lookup(this.#options.known, sensorEvals, evalIdOf(sensor.sensor_id, source, begun))
    assert(evaluation !== undefined, 'an evaluation that was recorded has a row')
    const runs = await this.runsOf(evaluation)
    const recorded = { sensor, evaluation, run_ids: idsOfRuns(runs), runs, published_at, traceparent }
    this.#options.onEvaluated?.(recorded)
    return recorded
  }

  /** The runs that an evaluation asked for. Its record expires, so those of an old one may be unknown. */
  async runsOf(evaluation: Readonly<SensorEvalRow> | undefined): Promise<RunOfEvaluation[]> {
    if (evaluation === undefined || !evaluation.accepted) return []
    const made = await this.#options.known.coldRows(runKeyIndex).lookup(evaluation.run_keys.map((key) => [key]))
    const byKey = new Map(made.flatMap((row) => (row === undefined ? [] : [[row.run_key, row]])))
    return runsOfEvaluation(evaluation, (key) => byKey.get(key))
  }

  /** From now on nothing is recorded. */
  close(): void {
    this.#isClosed = true
  }

  async #eventsOf({ before: _, ...evaluated }: Evaluated): Promise<NewEvent[]> {
    const { clock, known, graph, requestRun } = this.#options
    const { definition, source, result, requested_by = null } = evaluated
    const runs: readonly AskedRun[] = 'runs' in result ? result.runs : []
    const keyed = runs.flatMap(({ key }, index) =>
      key == null ? [] : [runKeyOfEvaluation(definition.sensor_id, source, index, key)],
    )
    const runOf = await runsOfKeys(known, keyed)
    const partitions = graph().partitions('runs' in result ? result : {})
    const at = { graph: graph().get().graph, partitions }
    const keysTurn = 'runs' in result ? turnOfReported(known.rows(), result, clock.now()) : {}
    return evaluationEvents({ ...evaluated, requested_by, requestRun, runOf, at, keysTurn })
  }
}

/** Undefined if the server closes. */
function resultOf(report: Exclude<EvaluationReport, { outcome: 'unavailable' }>): EvaluationResult | undefined {
  switch (report.outcome) {
    case 'requests': {
      const { outcome: _, ...requests } = report
      return requests
    }
    case 'error':
      return { error: report.error, unfit_field: report.unfit_field }
    case 'timed_out':
      return { timedOut: true }
    case 'condition':
      return { error: 'it returned the answer of a schedule condition. Return runs, or nothing.' }
    case 'cancelled':
      return undefined
  }
}

/** The code of the error while no code of the project can be evaluated. */
export const PROJECT_NOT_LOADED = 'project_not_loaded'

/** The reason is for the owner of the sensor, not for whoever may send to it. */
const notEvaluated = (reason: string): ServoError =>
  new ServoError('unavailable', PROJECT_NOT_LOADED, 'project code cannot be evaluated at the moment', {
    hint: 'Nothing was recorded. The server log says what is wrong; send the message again once it is fixed.',
    facts: { retry_after_sec: RETRY_AFTER_SEC, reason },
  })

/** How long a sender is asked to wait for a person to mend the code. */
const RETRY_AFTER_SEC = 60

const ended = (): ServoError =>
  new ServoError('unavailable', 'evaluation_ended', 'the evaluation was stopped because the server is shutting down', {
    hint: 'Nothing was recorded. Send it again.',
  })
