import type { RequestSummary } from '../runs/request-summary.ts'
import type { Reason } from './reasons.ts'

/** One of two requests under one run key. */
export interface ConflictingRequest {
  /** Who asked. */
  readonly origin: Reason
  readonly requested_at: string
  /** The first of the selected assets and partitions, and how many there are; null partitions for none. */
  readonly assets: readonly string[]
  readonly asset_count: number
  readonly partitions: readonly string[] | null
  readonly partition_count: number
}

/** The body of a message: what is kept of it. */
export interface MessageBody {
  readonly body_hash: string | null
  readonly body_size: number | null
}

/** Two different requests under one name. The first counts; the later one made nothing. */
export type Conflict =
  | {
      readonly kind: 'run_key'
      readonly detected_at: string
      readonly event_id: string
      readonly run_key: string
      /** The run of the first request. */
      readonly run_id: string
      /** Null if it is not on record. */
      readonly first: ConflictingRequest | null
      readonly later: ConflictingRequest | null
      readonly advice: string
    }
  | {
      readonly kind: 'message'
      readonly detected_at: string
      readonly event_id: string
      readonly sensor_id: string
      readonly sensor_name: string
      readonly message_id: string
      /** The evaluation that counts. */
      readonly eval_id: string
      readonly first: MessageBody
      readonly later: MessageBody
      readonly advice: string
    }

/** What to do about a run key that was used for two different things. */
export function adviceForRunKey(runKey: string, later: RequestSummary | null): string {
  if (runKey.startsWith('user:') || runKey.startsWith('manual:'))
    return 'Ask under another key (servo run --key), or repeat the first request as it was.'
  if (/^sensor:[^:]*:key:/.test(runKey))
    return 'Let the code of the sensor give each piece of work a key of its own, such as one with the partition in it.'
  if (runKey.startsWith('rerun:')) return 'Rerun it under another key (servo runs rerun --key).'
  if (runKey.startsWith('sched:')) return 'Trigger the schedule under another key (servo schedules trigger --key).'
  if (later?.source.type === 'sensor')
    return 'The code of the sensor returned other runs for the same evaluation. Let it return the same for the same message or cursor.'
  return 'Ask under another key, or repeat the first request as it was.'
}

export const ADVICE_FOR_MESSAGE =
  'The first body counts. Let the sender give each message an id of its own, and send the other body under a new one.'
