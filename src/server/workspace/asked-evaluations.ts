import type {
  AcceptedEvaluation,
  AcceptedReplay,
  AcceptedSensor,
  DryEvaluation,
  EvaluateBody,
  ReplayBody,
} from '../../api/automation/sensor-contract.ts'
import type { Deliveries, DeliveryAnswer, RunOfEvaluation } from '../../contract/delivery.ts'
import type { SensorMessage } from '../../contract/evaluation.ts'
import type { SensorSource } from '../../contract/sensor.ts'
import { besidesRuns, wordsBesidesRuns } from '../../domain/sensors/evaluation/besides-runs.ts'
import { idsOfRuns } from '../../domain/sensors/evaluation/runs-of-evaluation.ts'
import type { Standstill } from '../../domain/sensors/evaluation/standstill.ts'
import { sensorHappenings } from '../../domain/sensors/happenings/sensor-happenings.table.ts'
import type { SensorRow } from '../../domain/sensors/sensor-definitions.table.ts'
import { type SensorEvalRow, sensorEvals } from '../../domain/sensors/sensor-evals.table.ts'
import { SensorMessageReplayed } from '../../domain/sensors/sensor-message-replayed.event.ts'
import { sensorMessages } from '../../domain/sensors/sensor-messages.table.ts'
import { ServoError } from '../../lib/error.ts'
import { sha256 } from '../../lib/hash.ts'
import { toIso } from '../../lib/time.ts'
import { newEvent } from '../../model/event.ts'
import { type Knowledge, lookup } from './knowledge.ts'
import { type RecordedChange, recordChange, recordedBefore } from './recorded-change.ts'
import type { SensorReader } from './sensor-reader.ts'
import { refusedTransition } from './state-version.ts'

type Named = Pick<SensorRow, 'sensor_id' | 'sensor_name'>

export const acceptedSensor = (
  { sensor_id, sensor_name }: Named,
  request_id: string,
  message: string,
  { event_id, at }: RecordedChange,
): AcceptedSensor => ({
  sensor_id,
  sensor_name,
  message,
  accepted_event_id: event_id,
  accepted_at: toIso(at),
  correlation_id: request_id,
})

/** Evaluations that a user asks for: a message by hand, a poll ahead of time, a message that failed once more. */
export class AskedEvaluations {
  readonly #known: Knowledge
  readonly #sensors: SensorReader
  readonly #deliveries: Deliveries | undefined
  readonly #isServer: boolean

  constructor(known: Knowledge, sensors: SensorReader, options: { deliveries?: Deliveries | undefined; isServer: boolean }) {
    this.#known = known
    this.#sensors = sensors
    this.#deliveries = options.deliveries
    this.#isServer = options.isServer
  }

  async evaluate(idOrName: string, body: EvaluateBody, user: string): Promise<AcceptedEvaluation | DryEvaluation> {
    const row = this.#sensors.present(this.#sensors.find(idOrName), 'evaluated')
    const { sensor_id, sensor_name } = row
    const deliveries = this.#delivering()
    const request = body.request_id ?? this.#known.mintId()
    const message = messageFor(row, body, `manual_${request}`)
    if (body.dry_run) {
      const report = await deliveries.dryRun(sensor_id, message)
      if (report.outcome === 'cancelled')
        throw new ServoError('unavailable', 'closed', 'the server is shutting down', { hint: 'Try again.' })
      return { sensor_id, sensor_name, dry_run: true, report }
    }
    this.#refuseStandstill(row, 'evaluated')
    return message === undefined
      ? await this.#poll(deliveries, row, request, user)
      : await this.#deliver(deliveries, row, { message, request, user })
  }

  async replay(idOrName: string, message_id: string, body: ReplayBody, user: string): Promise<AcceptedReplay> {
    const row = this.#sensors.find(idOrName)
    const { sensor_id } = row
    const { data, attributes = {} } = body
    const deliveries = data === undefined ? undefined : this.#delivering()
    const request = body.request_id ?? this.#known.mintId()
    const replayed = { sensor_id, message_id, request_id: request, requested_by: user }
    const event = newEvent(SensorMessageReplayed, replayed, { actor: user })
    const before = await recordedBefore(this.#known, event)
    if (before === undefined) {
      await this.#checkFailed(this.#sensors.present(row, 'replayed'), message_id, data !== undefined)
      if (deliveries !== undefined) this.#refuseStandstill(row, 'replayed')
    }
    const recorded = before ?? (await recordChange(this.#known, event))
    const message = { id: message_id, data, attributes, published_at: null }
    const evaluation = deliveries === undefined ? null : await this.#deliver(deliveries, row, { message, request, user })
    const words = evaluation === null ? this.#nextTry(row, message_id) : `message replayed: ${evaluation.message}`
    return { ...acceptedSensor(row, request, words, recorded), message_id, evaluation }
  }

  /** When a message that was replayed without its data is tried again. What happened here is kept until it is accepted; bodies are not. */
  #nextTry(row: Readonly<SensorRow>, messageId: string): string {
    if (this.#known.rows().hot(sensorHappenings).get(row.sensor_id, messageId) === undefined)
      return `message replayed: ${messageId} is tried again when its sender delivers it. Servo does not keep its body: to try it now, pass --data.`
    if (this.#sensors.standstillOf(row) !== undefined)
      return 'message replayed: it is tried again when the sensor is evaluated again'
    const restsUntil = this.#sensors.stateOf(row)?.backoff_until ?? 0
    if (restsUntil > this.#known.now())
      return `message replayed: it is tried again at ${toIso(restsUntil)}, because the sensor waits after errors; resume the sensor to try it at once`
    const when = this.#deliveries === undefined ? 'as soon as a server runs' : 'at once'
    return `message replayed: it is tried again ${when}`
  }

  /** What evaluates here. */
  #delivering(): Deliveries {
    if (this.#deliveries !== undefined) return this.#deliveries
    throw this.#isServer
      ? new ServoError('unavailable', 'automation_off', 'automation is off on this server, so no sensor is evaluated', {
          hint: 'Start it without --no-automation.',
        })
      : new ServoError('unavailable', 'no_server', 'no server is running this project, so no sensor can be evaluated', {
          hint: 'Start one: servo dev',
        })
  }

  #refuseStandstill(row: Readonly<SensorRow>, requested: string): void {
    const standstill = this.#sensors.standstillOf(row)
    if (standstill !== undefined) throw stands(row.sensor_name, standstill, requested)
  }

  /** Refuses what is not to be tried again. One that still has tries left is tried now if its data is there, and needs no replay if not. */
  async #checkFailed({ sensor_id, sensor_name }: Readonly<SensorRow>, messageId: string, hasData: boolean): Promise<void> {
    const known = await lookup(this.#known, sensorMessages, sensor_id, messageId)
    if (known === undefined)
      throw new ServoError('not_found', 'no_such_message', `message ${JSON.stringify(messageId)} of ${sensor_name} not found`, {
        hint: `servo sensors dead-letters ${sensor_name} lists the messages that can be replayed.`,
      })
    if (known.status === 'dead' || (known.status === 'failing' && hasData)) return
    const waits = this.#known.rows().hot(sensorHappenings).get(sensor_id, messageId) !== undefined
    const next = waits ? 'Servo will try it again by itself.' : 'It is tried again when its sender delivers it again.'
    throw known.status === 'accepted'
      ? refusedTransition('not_a_dead_letter', `${messageId} was accepted, so it cannot be replayed`, {
          ...{ current: known.status, requested: 'replayed', hint: 'Its runs are on record.' },
        })
      : refusedTransition('not_a_dead_letter', `${messageId} is not a dead letter: it has tries left`, {
          ...{ current: known.status, requested: 'replayed' },
          hint: `${next} To try it now, send its data: servo sensors replay ${sensor_name} ${messageId} --data …`,
        })
  }

  async #poll(deliveries: Deliveries, row: Readonly<SensorRow>, request: string, user: string): Promise<AcceptedEvaluation> {
    const { eval_id, status } = await deliveries.poll(row.sensor_id, user)
    const found = eval_id === null ? undefined : await lookup(this.#known, sensorEvals, eval_id)
    const [runs = []] = found === undefined ? [] : await this.#sensors.runsOf([found])
    const words = status === 'error' ? 'the poll failed' : `polled: ${resultText(runs, found)}`
    return {
      ...acceptedSensor(row, request, words, this.#recordOf(found)),
      ...{
        dry_run: false,
        status,
        message_id: null,
        eval_id,
        run_ids: idsOfRuns(runs),
        runs,
        repeated: false,
        conflict: false,
      },
      ...{ error: found?.error ?? null, try: null, max_tries: null },
    }
  }

  async #deliver(
    deliveries: Deliveries,
    row: Readonly<SensorRow>,
    { message, request, user }: { message: SensorMessage; request: string; user: string },
  ): Promise<AcceptedEvaluation> {
    const { sensor_id, sensor_name } = row
    const text = message.data === null ? null : JSON.stringify(message.data)
    const answer = await deliveries.deliver({
      sensor_id,
      message,
      body_hash: text === null ? null : sha256(text),
      body_size: text === null ? null : Buffer.byteLength(text),
      requested_by: user,
    })
    const { message_id, ...became } = judged(answer, sensor_name)
    const evalId = became.eval_id ?? this.#sensors.stateOf(row)?.last_eval_id ?? null
    const found = evalId === null ? undefined : await lookup(this.#known, sensorEvals, evalId)
    const own = found?.message_id === message_id ? found : undefined
    const isOver = became.status === 'error' || became.repeated
    const words = isOver ? became.words : `${became.words}: ${resultText(became.runs, own)}`
    return {
      ...acceptedSensor(row, request, words, this.#recordOf(became.repeated ? undefined : own)),
      ...{ dry_run: false, message_id, eval_id: own?.eval_id ?? became.eval_id },
      ...{ status: became.status, run_ids: became.run_ids, runs: became.runs },
      ...{ repeated: became.repeated, conflict: became.conflict },
      ...{ error: became.error, try: became.try, max_tries: became.max_tries },
    }
  }

  #recordOf(found: Readonly<SensorEvalRow> | undefined): RecordedChange {
    return found === undefined
      ? { event_id: null, at: this.#known.now() }
      : { event_id: found.eval_event_id, at: found.evaluated_at }
  }
}

/** The message that a body asks for; undefined for a sensor that polls. */
function messageFor(row: Readonly<SensorRow>, body: EvaluateBody, newId: string): SensorMessage | undefined {
  const { type } = row.config
  const { data, message_id, attributes } = body
  if (type === 'poll') {
    if (data === undefined && message_id === undefined && attributes === undefined) return undefined
    throw new ServoError('invalid', 'takes_no_message', `${row.sensor_name} polls and takes no messages`, {
      hint: `Poll it without data, message_id and attributes: servo sensors evaluate ${row.sensor_name}`,
    })
  }
  // Null is content too, but nobody means it who says nothing: the schema of the sensor would refuse it, as a failed try on record.
  if (data === undefined)
    throw new ServoError('invalid', 'data_missing', `${row.sensor_name} needs a message to evaluate`, {
      hint: `servo sensors send ${row.sensor_name} --data '${JSON.stringify(EXAMPLES[type])}'`,
      facts: { field: 'data' },
    })
  return { id: message_id ?? newId, data, attributes: attributes ?? {}, published_at: null }
}

const HAPPENED = { run_id: 'run_1', at: '2025-01-15T05:00:00.000Z' }
const EXAMPLES: Readonly<Record<Exclude<SensorSource['type'], 'poll'>, object>> = {
  webhook: { id: 7 },
  pubsub: { id: 7 },
  asset: { type: 'materialized', asset_key: 'orders', partition_key: null, ...HAPPENED },
  run: { type: 'run', ...HAPPENED, state: 'FAILED', asset_selection: ['orders'], labels: {} },
}

type Judged = Pick<
  AcceptedEvaluation,
  'status' | 'eval_id' | 'run_ids' | 'runs' | 'repeated' | 'conflict' | 'error' | 'try' | 'max_tries'
> & { readonly message_id: string; readonly words: string }

/** What the answer to a delivery means for the user who sent it. */
function judged(answer: DeliveryAnswer, sensorName: string): Judged {
  if (answer.kind === 'standstill') {
    if (answer.code === 'automation_off')
      throw new ServoError('unavailable', 'automation_off', 'automation is off on this server', {
        hint: 'Start it without --no-automation.',
      })
    throw stands(sensorName, { ...answer, code: answer.code, since: null }, 'evaluated')
  }
  const { message_id } = answer
  if (answer.kind === 'dead')
    throw refusedTransition('dead_letter', `${message_id} is a dead letter: ${answer.error ?? 'it used up its tries'}`, {
      current: 'dead',
      requested: 'evaluated',
      hint: `Replay it: servo sensors replay ${sensorName} ${message_id} --data …`,
    })
  if (answer.kind === 'failed') {
    const { error, max_tries } = answer
    const words = `evaluation failed (attempt ${answer.try} of ${max_tries})`
    const failed = { status: 'error', eval_id: null, run_ids: [], runs: [], repeated: false, conflict: false }
    return { ...failed, message_id, words, error, try: answer.try, max_tries }
  }
  const { eval_id, run_ids, runs, repeated, conflict } = answer
  const before = conflict ? 'accepted before, with another body' : 'accepted before'
  const words = repeated ? `message ${before}: no new run` : 'message accepted'
  const status = run_ids.length > 0 ? 'triggered' : 'no_new_data'
  return { message_id, words, status, eval_id, run_ids, runs, repeated, conflict, error: null, try: null, max_tries: null }
}

/** What an evaluation did: `1 new run, added 1 key to customers`. */
function resultText(runs: readonly RunOfEvaluation[], found: Readonly<SensorEvalRow> | undefined): string {
  const made = runs.filter(({ created }) => created).length
  const count = made === 0 ? 'no new run' : made === 1 ? '1 new run' : `${made} new runs`
  const besides = found === undefined ? [] : wordsBesidesRuns(besidesRuns(found))
  return [runs.length === 0 ? 'it requested no run' : count, ...besides].join(', ')
}

const HINTS: Readonly<Record<Standstill['code'], (name: string) => string>> = {
  paused: (name) => `Resume it first: servo sensors resume ${name}`,
  automation_paused: () => 'Resume everything first: servo automation resume',
  disabled: () => 'Enable it first, where it is declared.',
  removed: () => 'Declare it again to use it.',
}

function stands(name: string, { code, by, reason }: Standstill, requested: string): ServoError {
  const what = code === 'automation_paused' ? 'all automation is paused' : `${name} is ${code}`
  const why = `${by === null ? '' : ` by ${by}`}${reason === null || reason === '' ? '' : `: ${reason}`}`
  return refusedTransition(`sensor_${code}`, `${what}${why}`, { current: code, requested, hint: HINTS[code](name) })
}
