import { z } from 'zod'
import { evalStatuses, sensorStatuses } from '../../contract/automation-statuses.ts'
import type { RunOfEvaluation } from '../../contract/delivery.ts'
import type { EvaluationReport } from '../../contract/evaluation.ts'
import { sensorDefinition, sensorSource } from '../../contract/sensor.ts'
import { sensorDefinitions } from '../../domain/sensors/sensor-definitions.table.ts'
import { sensorEvals } from '../../domain/sensors/sensor-evals.table.ts'
import { sensorMessages } from '../../domain/sensors/sensor-messages.table.ts'
import { sensorState } from '../../domain/sensors/sensor-state.table.ts'
import { id, textMap } from '../../model/envelope.ts'
import { rowSchema } from '../answers/row-schema.ts'
import { acceptance, moment, named, nextCursor, type Told, typedAs, whole } from '../answers/told.ts'
import { listQuery, whenQuery } from '../request/list-query.ts'
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

export const sensorListQuery = listQuery.extend({
  status: z.enum(sensorStatuses).optional().describe('Only sensors of this status.'),
})
export type SensorListQuery = z.infer<typeof sensorListQuery>

export const evalQuery = listQuery.extend({
  status: z.enum(evalStatuses).optional().describe('Only evaluations of this status.'),
  ...whenQuery('recorded'),
})
export type EvalQuery = z.infer<typeof evalQuery>

export const deadLetterQuery = evalQuery.extend({
  status: z.enum(['dead', 'all']).default('dead').describe('`all` has messages that failed and have tries left as well.'),
})
export type DeadLetterQuery = z.infer<typeof deadLetterQuery>

/** The runs of one evaluation that are named with it. All run keys are there. */
export const SHOWN_RUNS = 100

export const runOfEvaluation = named(
  'RunOfEvaluation',
  z.object({
    run_id: z.string(),
    run_key: z.string(),
    key: z.string().nullable().describe('The key that the code gave; null if it gave none.'),
    created: z
      .boolean()
      .describe('True if the evaluation made the run. Otherwise the run is that of an earlier request with the same key.'),
    conflict: z.boolean().describe('True if the earlier request was for something else.'),
    requested_at: moment.describe('When the request came that made the run.'),
  }) satisfies z.ZodType<RunOfEvaluation>,
)

const keyCounts = z.array(z.object({ set_name: z.string(), count: whole }))

const wireEval = named(
  'Evaluation',
  rowSchema(sensorEvals, { keys_added: keyCounts, keys_removed: keyCounts }).extend({
    run_ids: z.array(z.string()).describe('Runs of the first of its run keys.'),
    runs: z.array(runOfEvaluation).describe('The same, with what became of each request.'),
  }),
)
export type WireEval = Told<typeof wireEval>

const wireDeadLetter = named('DeadLetter', rowSchema(sensorMessages, {}))
export type WireDeadLetter = Told<typeof wireDeadLetter>

/** How senders reach a sensor, and what keeps them out. */
const senderFacts = z.object({
  url: z.string().nullable().describe('Null while the address of the server is not known.'),
  audience: z
    .string()
    .nullable()
    .describe('What the token of a push must be meant for; null for a webhook, and while that is not known.'),
  missing_secrets: z.array(z.string()).describe('The environment variables of which the server needs one, and has none.'),
  refused: z.record(z.string(), whole).describe('How many requests were refused since the server started, by reason.'),
})
export type SenderFacts = Told<typeof senderFacts>

/** A sensor as it is now. */
export const sensorDetail = named(
  'Sensor',
  z.object({
    definition: named('SensorDefinition', rowSchema(sensorDefinitions, { config: sensorSource })),
    state: named('SensorState', rowSchema(sensorState, {})).nullable(),
    status: z.enum(sensorStatuses),
    status_reason: z
      .string()
      .nullable()
      .describe('Why it is not evaluated, or how often it failed, in words; null if all is well.'),
    next_poll_at: moment.nullable().describe('When it is polled next; null if it is not to be polled.'),
    unrecorded_polls: z
      .object({ count: whole, first: moment, last: moment })
      .nullable()
      .describe(
        'Polls since the last record that found nothing: those of all sensors are recorded together, every two minutes.',
      ),
    address: z.string().nullable().describe('Where senders reach it on the server; null if it has no senders.'),
    senders: senderFacts
      .nullable()
      .describe('What the server knows of its senders; null if it has none, or no server answers.'),
    last_eval: wireEval.nullable(),
  }),
)
export type SensorDetail = Told<typeof sensorDetail>

export const sensorPage = named(
  'SensorPage',
  z.object({ sensors: z.array(named('ListedSensor', sensorDetail.omit({ last_eval: true }))), ...nextCursor }),
)
export type SensorPage = Told<typeof sensorPage>

export const evalPage = named('EvaluationPage', z.object({ evals: z.array(wireEval), ...nextCursor }))
export type EvalPage = Told<typeof evalPage>

export const deadLetterPage = named('DeadLetterPage', z.object({ dead_letters: z.array(wireDeadLetter), ...nextCursor }))
export type DeadLetterPage = Told<typeof deadLetterPage>

/** What became of a request that changes a sensor. */
export const changedSensor = named(
  'AcceptedSensor',
  z.object({ sensor_id: z.string(), sensor_name: z.string(), ...acceptance }),
)
export type AcceptedSensor = Told<typeof changedSensor>

/** An evaluation that a user asked for and that is on record, whether it succeeded or failed. */
const acceptedEvaluation = named(
  'AcceptedEvaluation',
  changedSensor.extend({
    dry_run: z.literal(false),
    status: z.string(),
    message_id: z.string().nullable().describe('Null for a poll.'),
    eval_id: z
      .string()
      .nullable()
      .describe('Null for a poll that found nothing, which is recorded later together with others.'),
    run_ids: z.array(z.string()),
    runs: z.array(runOfEvaluation).describe('The same, with what became of each request.'),
    repeated: z.boolean().describe('True if the message was accepted before, so that nothing was evaluated.'),
    conflict: z.boolean().describe('True if it was accepted before with another body.'),
    error: z.string().nullable(),
    try: whole.nullable().describe('Which try at the message failed.'),
    max_tries: whole.nullable().describe('After how many tries it is a dead letter.'),
  }),
)
export type AcceptedEvaluation = Told<typeof acceptedEvaluation>

/** What an evaluation would have done. Nothing of it is on record. */
const dryEvaluation = named(
  'DryEvaluation',
  z.object({
    sensor_id: z.string(),
    sensor_name: z.string(),
    dry_run: z.literal(true),
    report: typedAs<EvaluationReport>(z.looseObject({ outcome: z.string() })).describe('What its code reported.'),
  }),
)
export type DryEvaluation = Told<typeof dryEvaluation>

export const evaluated = z.discriminatedUnion('dry_run', [acceptedEvaluation, dryEvaluation])

export const acceptedReplay = named(
  'AcceptedReplay',
  changedSensor.extend({
    message_id: z.string(),
    evaluation: acceptedEvaluation.nullable().describe('What came of it, if the request had the data of the message.'),
  }),
)
export type AcceptedReplay = Told<typeof acceptedReplay>

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
