import type { EvaluationReport, SensorMessage } from './evaluation.ts'

/** A message for a sensor, from a sender that was verified, from a user, or made by Servo itself. */
export interface Delivery {
  readonly sensor_id: string
  readonly message: SensorMessage
  /** SHA-256 of the body and its size in bytes; null where there is none. */
  readonly body_hash: string | null
  readonly body_size: number | null
  /** How many runs in a row sensors have asked for, each because of the one before, until this happened. */
  readonly chain?: number
  /** The trace of its sender, if it has one. */
  readonly traceparent?: string | undefined
  /** The user who sent it by hand. */
  readonly requested_by?: string
}

/** What became of a run that an evaluation asked for. */
export interface RunOfEvaluation {
  readonly run_id: string
  readonly run_key: string
  /** The key that the code gave; null if it gave none. */
  readonly key: string | null
  /** True if the evaluation made the run. Otherwise the run is that of an earlier request with the same key. */
  readonly created: boolean
  /** True if the earlier request was for something else. */
  readonly conflict: boolean
  /** When the request came that made the run. */
  readonly requested_at: string
}

/** What became of a delivery. Everything that it says is durable. */
export type DeliveryAnswer =
  /** `repeated`: it was accepted before, perhaps with another body, which is on record as a conflict then. */
  | {
      readonly kind: 'accepted'
      readonly message_id: string
      readonly eval_id: string
      readonly run_ids: readonly string[]
      readonly runs: readonly RunOfEvaluation[]
      readonly repeated: boolean
      readonly conflict: boolean
    }
  /** This try failed; the next delivery is the next try. */
  | {
      readonly kind: 'failed'
      readonly message_id: string
      readonly error: string
      /** The field by which the message does not fit the sensor, empty for the message as a whole. Absent if the sensor itself failed. */
      readonly unfit_field?: string
      readonly try: number
      readonly max_tries: number
    }
  /** It failed too often. The sender is to stop; a user may replay it. */
  | { readonly kind: 'dead'; readonly message_id: string; readonly error: string | null }
  /** The sensor is paused, disabled or removed, or all automation is paused or off. */
  | {
      readonly kind: 'standstill'
      readonly code: 'removed' | 'disabled' | 'paused' | 'automation_paused' | 'automation_off'
      readonly by: string | null
      readonly reason: string | null
    }

/** Polls in a row that found nothing, in milliseconds. */
export interface UnrecordedPolls {
  readonly poll_count: number
  readonly first: number
  readonly last: number
}

/** Delivers messages to sensors: one evaluation at a time for each message, one that is accepted for ever. */
export interface Deliveries {
  /** Throws `unavailable` when the result cannot be made durable now. */
  deliver(delivery: Delivery): Promise<DeliveryAnswer>
  /** Evaluates without recording anything: a message for a push sensor, the present cursor for a poll if there is no message. */
  dryRun(sensorId: string, message?: SensorMessage): Promise<EvaluationReport>
  /** Polls now, although it is not due. */
  poll(sensorId: string, requestedBy: string): Promise<{ readonly eval_id: string | null; readonly status: string }>
  /** When this process last polled the sensor, in milliseconds: a poll that found nothing may not be on record yet. */
  polledAt?(sensorId: string): number | undefined
  /** The polls that found nothing and are not on record yet. */
  unrecordedPolls?(sensorId: string): UnrecordedPolls | undefined
  /** Records them now, because they belong to a cursor that is about to be replaced. */
  recordPolls?(sensorId: string): Promise<void>
}
