import type { Delivery, DeliveryAnswer } from '../../../contract/delivery.ts'
import type { EvaluationReport, SensorMessage } from '../../../contract/evaluation.ts'
import type { EvaluationResult } from '../../../domain/sensors/evaluation/evaluation-events.ts'
import { fixedResult } from '../../../domain/sensors/evaluation/fixed-result.ts'
import { idsOfRuns } from '../../../domain/sensors/evaluation/runs-of-evaluation.ts'
import { deliveryOf } from '../../../domain/sensors/messages.ts'
import type { SensorRow } from '../../../domain/sensors/sensor-definitions.table.ts'
import { sensorEvals } from '../../../domain/sensors/sensor-evals.table.ts'
import { SensorMessageConflicted } from '../../../domain/sensors/sensor-message-conflicted.event.ts'
import { sensorMessageConflicts } from '../../../domain/sensors/sensor-message-conflicts.table.ts'
import { type SensorMessageRow, sensorMessages } from '../../../domain/sensors/sensor-messages.table.ts'
import { assert } from '../../../lib/assert.ts'
import { ServoError } from '../../../lib/error.ts'
import { newEvent } from '../../../model/event.ts'
import { lookup } from '../known-rows.ts'
import { evaluatedMessage } from './evaluated-message.ts'
import type { Evaluations, EvaluationsOptions } from './evaluations.ts'

/** More senders than that wait for nothing: each holds a connection, and its message comes again. */
const MAX_WAITING = 1_000
/** All bodies that wait, whatever the sensor. As values in memory they may take some 40 times as much. */
const MAX_WAITING_BYTES = 16 * 2 ** 20

export interface MessageDeliveriesOptions extends Pick<EvaluationsOptions, 'known' | 'submit' | 'mintId'> {
  readonly evaluations: Evaluations
  /** Resolves when all that is in memory now is durable. */
  readonly durable: () => Promise<void>
}

/** A try at a message that is going on. */
interface Going {
  readonly body_hash: string | null
  readonly answer: Promise<DeliveryAnswer>
}

/** Delivers messages to sensors: one try at a time for each message, and what is answered is durable and what the fold decided. */
export class MessageDeliveries {
  readonly #options: MessageDeliveriesOptions
  readonly #going = new Map<string, Going>()
  /** How many deliveries wait for an answer, by sensor. */
  readonly #waiting = new Map<string, number>()
  #waitingBytes = 0

  constructor(options: MessageDeliveriesOptions) {
    this.#options = options
  }

  async deliver(definition: Readonly<SensorRow>, delivery: Delivery): Promise<DeliveryAnswer> {
    const { sensor_id, sensor_name } = definition
    const waiting = this.#waiting.get(sensor_id) ?? 0
    if (waiting >= MAX_WAITING)
      throw new ServoError(
        'unavailable',
        'too_many_deliveries',
        `${MAX_WAITING} deliveries to ${sensor_name} are already waiting`,
        {
          hint: 'Nothing was recorded. Send it again later.',
        },
      )
    const bytes = delivery.body_size ?? 0
    if (this.#waitingBytes > 0 && this.#waitingBytes + bytes > MAX_WAITING_BYTES)
      throw new ServoError(
        'unavailable',
        'too_many_deliveries',
        `${this.#waitingBytes} bytes of messages are already waiting`,
        {
          hint: 'Nothing was recorded. Send it again later.',
        },
      )
    this.#waiting.set(sensor_id, waiting + 1)
    this.#waitingBytes += bytes
    try {
      return await this.#join(definition, delivery)
    } finally {
      this.#waitingBytes -= bytes
      const left = (this.#waiting.get(sensor_id) ?? 1) - 1
      if (left > 0) this.#waiting.set(sensor_id, left)
      else this.#waiting.delete(sensor_id)
    }
  }

  /** What a sensor makes of a message, without recording it. */
  async dryRun(definition: Readonly<SensorRow>, message: SensorMessage): Promise<EvaluationReport> {
    const { evaluations, mintId } = this.#options
    const begun = mintId()
    const source = { source: 'push', message_id: message.id, try: 1 } as const
    return await evaluations.checked({ definition, begun, source, ...(await this.#evaluated(definition, message, begun)) })
  }

  /** A delivery of a message whose try is going on is no try of its own: it waits, and gets the same answer. */
  async #join(definition: Readonly<SensorRow>, delivery: Delivery): Promise<DeliveryAnswer> {
    const { sensor_id, message, body_hash } = delivery
    const key = JSON.stringify([sensor_id, message.id])
    for (let going = this.#going.get(key); going !== undefined; going = this.#going.get(key)) {
      const answer = await going.answer
      if (answer.kind !== 'accepted' || going.body_hash === body_hash) return answer
      // Another body under the id of a message that was accepted is a conflict, which has to be recorded.
    }
    const answer = this.#try(definition, delivery).finally(() => this.#going.delete(key))
    this.#going.set(key, { body_hash, answer })
    return await answer
  }

  async #try(definition: Readonly<SensorRow>, delivery: Delivery): Promise<DeliveryAnswer> {
    const { evaluations, mintId } = this.#options
    const { message, body_hash, body_size, requested_by, chain, traceparent } = delivery
    const known = await this.#messageOf(delivery)
    const decision = deliveryOf(known, body_hash)
    if (decision.kind === 'evaluate') {
      const begun = mintId()
      const evaluated = await this.#evaluated(definition, message, begun)
      const source = { source: 'push', message_id: message.id, try: decision.try, body_hash, body_size } as const
      const { published_at } = message
      const recorded = { definition, begun, source, requested_by, chain, traceparent, published_at, ...evaluated }
      const { evaluation } = await evaluations.record(recorded)
      const answer = await this.#answer(definition, delivery, await this.#messageOf(delivery), evaluation.eval_id)
      const { unfit_field } = 'error' in evaluated.result ? evaluated.result : {}
      return answer.kind === 'failed' && unfit_field !== undefined ? { ...answer, unfit_field } : answer
    }
    if (decision.kind === 'conflict') await this.#recordConflict(delivery)
    // Memory is ahead of the ledger.
    else await this.#options.durable()
    return await this.#answer(definition, delivery, known)
  }

  async #evaluated(
    definition: Readonly<SensorRow>,
    message: SensorMessage,
    begun: string,
  ): Promise<{ result: EvaluationResult; duration_ms: number }> {
    if (!definition.has_code) return { result: fixedResult(definition, message.data), duration_ms: 0 }
    return await this.#options.evaluations.evaluate(evaluatedMessage(definition, message, begun))
  }

  async #recordConflict({ sensor_id, message: { id: message_id }, body_hash, body_size }: Delivery): Promise<void> {
    assert(body_hash !== null, 'only another body is a conflict')
    const { known, submit, durable } = this.#options
    if ((await lookup(known, sensorMessageConflicts, sensor_id, message_id, body_hash)) !== undefined) await durable()
    else await submit([newEvent(SensorMessageConflicted, { sensor_id, message_id, body_hash, body_size })])
  }

  /** What is on record of the message now: what the fold decided, and not what was hoped for. */
  async #answer(
    { max_tries }: Readonly<SensorRow>,
    { message: { id: message_id }, body_hash }: Delivery,
    row: Readonly<SensorMessageRow> | undefined,
    own?: string,
  ): Promise<DeliveryAnswer> {
    assert(row !== undefined, 'a message that was evaluated is on record')
    const became = deliveryOf(row, body_hash)
    if (became.kind === 'evaluate') {
      const { last_error, tries, replayed_after } = row
      return { kind: 'failed', message_id, error: last_error ?? '', try: tries - replayed_after, max_tries }
    }
    if (became.kind === 'dead') return { kind: 'dead', message_id, error: row.last_error }
    const { evaluations, known } = this.#options
    const { kind, eval_id } = became
    const runs = await evaluations.runsOf(await lookup(known, sensorEvals, eval_id))
    const run_ids = idsOfRuns(runs)
    return { kind: 'accepted', message_id, eval_id, run_ids, runs, repeated: eval_id !== own, conflict: kind === 'conflict' }
  }

  async #messageOf({ sensor_id, message }: Delivery): Promise<SensorMessageRow | undefined> {
    return await lookup(this.#options.known, sensorMessages, sensor_id, message.id)
  }
}
