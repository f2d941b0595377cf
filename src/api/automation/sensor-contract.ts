import { z } from 'zod'
import { evalStatuses, sensorStatuses } from '../../contract/automation-statuses.ts'
import type { RunOfEvaluation } from '../../contract/delivery.ts'
import type { EvaluationReport } from '../../contract/evaluation.ts'
import { sensorDefinition } from '../../contract/sensor.ts'
import type { sensorDefinitions } from '../../domain/sensors/sensor-definitions.table.ts'
import type { sensorEvals } from '../../domain/sensors/sensor-evals.table.ts'
import type { sensorMessages } from '../../domain/sensors/sensor-messages.table.ts'
import type { sensorState } from '../../domain/sensors/sensor-state.table.ts'
import { id, textMap, timestamp } from '../../model/envelope.ts'
import type { WireRow } from '../wire-row.ts'
import type { RequestBody, SwitchBody } from './schedule-contract.ts'

/** A request that is sent again under the same id gets the first answer again. */
const request = { request_id: id.optional() }

const { name, description, config, asset_selection, max_tries, enabled } = sensorDefinition.shape

/** A sensor without code: it asks for the same selection each time, of the partition and under the key that a message names. */
export const newSensorBody = z.object({ name, description, config, asset_selection, max_tries, enabled, ...request }).strict()
export type NewSensorBody = z.infer<typeof newSensorBody>

/** What is absent stays as it is. */
export const sensorChangesBody = z
  .object({
    name: name.optional(),
    description,
    config: config.optional(),
    asset_selection: asset_selection.unwrap().optional(),
    max_tries: max_tries.unwrap().optional(),
    enabled: enabled.unwrap().optional(),
    ...request,
  })
  .strict()
export type SensorChangesBody = z.infer<typeof sensorChangesBody>

export const resetCursorBody = z
  .object({
    /** JSON text, as the state of the sensor shows it. Null, or the text `null`: the next poll begins as the first one did. */
    cursor: z.string().nullable(),
    reason: z.string().max(4_096).optional(),
    ...request,
  })
  .strict()
export type ResetCursorBody = z.infer<typeof resetCursorBody>

/** Leaves room for what the id of the message begins with. */
const shortRequest = { request_id: id.max(500).optional() }

export const evaluateBody = z
  .object({
    data: z.unknown().optional(),
    attributes: textMap.optional(),
    message_id: id.optional(),
    dry_run: z.boolean().default(false),
    ...shortRequest,
  })
  .strict()
export type EvaluateBody = z.infer<typeof evaluateBody>

export const replayBody = z.object({ data: z.unknown().optional(), attributes: textMap.optional(), ...request }).strict()
export type ReplayBody = z.infer<typeof replayBody>

export const sensorListQuery = z.object({
  limit: z.coerce.number().int().min(1).max(1_000).default(50),
  cursor: z.string().max(2_048).optional(),
  status: z.enum(sensorStatuses).optional(),
})
export type SensorListQuery = z.infer<typeof sensorListQuery>

export const evalQuery = z.object({
  limit: z.coerce.number().int().min(1).max(1_000).default(50),
  cursor: z.string().max(2_048).optional(),
  status: z.enum(evalStatuses).optional(),
  since: timestamp.optional(),
  until: timestamp.optional(),
})
export type EvalQuery = z.infer<typeof evalQuery>

export const deadLetterQuery = evalQuery.extend({
  /** `all` has messages that failed and have tries left as well. */
  status: z.enum(['dead', 'all']).default('dead'),
})
export type DeadLetterQuery = z.infer<typeof deadLetterQuery>

/** The runs of one evaluation that are named with it. All run keys are there. */
export const SHOWN_RUNS = 100

export type WireEval = WireRow<typeof sensorEvals> & {
  /** Runs of the first of its run keys. */
  readonly run_ids: readonly string[]
  /** The same, with what became of each request. */
  readonly runs: readonly RunOfEvaluation[]
}
export type WireDeadLetter = WireRow<typeof sensorMessages>

/** How senders reach a sensor, and what keeps them out. */
export interface SenderFacts {
  /** Null while the address of the server is not known. */
  readonly url: string | null
  /** What the token of a push must be meant for; null for a webhook, and while that is not known. */
  readonly audience: string | null
  /** The environment variables of which the server needs one, and has none. */
  readonly missing_secrets: readonly string[]
  /** How many requests were refused since the server started, by reason. */
  readonly refused: Readonly<Record<string, number>>
}

/** A sensor as it is now. */
export interface SensorDetail {
  readonly definition: WireRow<typeof sensorDefinitions>
  readonly state: WireRow<typeof sensorState> | null
  readonly status: (typeof sensorStatuses)[number]
  /** Why it is not evaluated, or how often it failed, in words; null if all is well. */
  readonly status_reason: string | null
  /** When it is polled next; null if it is not to be polled. */
  readonly next_poll_at: string | null
  /** Polls since the last record that found nothing: those of all sensors are recorded together, every two minutes. */
  readonly unrecorded_polls: { readonly count: number; readonly first: string; readonly last: string } | null
  /** Where senders reach it on the server; null if it has no senders. */
  readonly address: string | null
  /** What the server knows of its senders; null if it has none, or no server answers. */
  readonly senders: SenderFacts | null
  readonly last_eval: WireEval | null
}

export interface SensorPage {
  readonly sensors: readonly Omit<SensorDetail, 'last_eval'>[]
  readonly next_cursor: string | null
}

export interface EvalPage {
  readonly evals: readonly WireEval[]
  readonly next_cursor: string | null
}

export interface DeadLetterPage {
  readonly dead_letters: readonly WireDeadLetter[]
  readonly next_cursor: string | null
}

/** What became of a request that changes a sensor. */
export interface AcceptedSensor {
  readonly sensor_id: string
  readonly sensor_name: string
  readonly message: string
  /** Null when nothing was new. */
  readonly accepted_event_id: string | null
  readonly accepted_at: string
  /** The id of the request. */
  readonly correlation_id: string
}

/** An evaluation that a user asked for and that is on record, whether it succeeded or failed. */
export interface AcceptedEvaluation extends AcceptedSensor {
  readonly dry_run: false
  readonly status: string
  /** Null for a poll. */
  readonly message_id: string | null
  /** Null for a poll that found nothing, which is recorded later together with others. */
  readonly eval_id: string | null
  readonly run_ids: readonly string[]
  /** The same, with what became of each request. */
  readonly runs: readonly RunOfEvaluation[]
  /** True if the message was accepted before, so that nothing was evaluated. */
  readonly repeated: boolean
  /** True if it was accepted before with another body. */
  readonly conflict: boolean
  readonly error: string | null
  /** Which try at the message failed, and after how many it is a dead letter. */
  readonly try: number | null
  readonly max_tries: number | null
}

/** What an evaluation would have done. Nothing of it is on record. */
export interface DryEvaluation {
  readonly sensor_id: string
  readonly sensor_name: string
  readonly dry_run: true
  readonly report: EvaluationReport
}

export interface AcceptedReplay extends AcceptedSensor {
  readonly message_id: string
  /** What came of it, if the request had the data of the message. */
  readonly evaluation: AcceptedEvaluation | null
}

/** Questions and commands about sensors, which are named by their id or their name. */
export interface SensorsApi {
  list(query: SensorListQuery): Promise<SensorPage>
  get(idOrName: string): Promise<SensorDetail>
  /** The newest first. */
  evals(idOrName: string, query: EvalQuery): Promise<EvalPage>
  deadLetters(idOrName: string, query: DeadLetterQuery): Promise<DeadLetterPage>
  create(body: NewSensorBody, user: string): Promise<AcceptedSensor>
  /** The last argument is the state version that the caller has seen, if it matters. */
  update(idOrName: string, body: SensorChangesBody, user: string, expected?: number): Promise<AcceptedSensor>
  remove(idOrName: string, body: RequestBody, user: string, expected?: number): Promise<AcceptedSensor>
  pause(idOrName: string, body: SwitchBody, user: string, expected?: number): Promise<AcceptedSensor>
  resume(idOrName: string, body: SwitchBody, user: string, expected?: number): Promise<AcceptedSensor>
  resetCursor(idOrName: string, body: ResetCursorBody, user: string, expected?: number): Promise<AcceptedSensor>
  evaluate(idOrName: string, body: EvaluateBody, user: string): Promise<AcceptedEvaluation | DryEvaluation>
  replay(idOrName: string, messageId: string, body: ReplayBody, user: string): Promise<AcceptedReplay>
}
