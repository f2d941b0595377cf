import type { RequestSummary } from '../runs/request-summary.ts'
import { keyInRunKey } from '../sensors/evaluation-ids.ts'
import type { Reason } from './reasons.ts'

/** One of two requests under one run key. */
export interface ConflictingRequest extends Omit<RequestSummary, 'source' | 'requested_at'> {
  /** Who asked. */
  readonly origin: Reason
  readonly requested_at: string
}

export const comparedParts = ['assets', 'partitions', 'labels', 'priority'] as const
export type ComparedPart = (typeof comparedParts)[number]

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
      /** The key as the code or the user gave it, and the sensor whose key it is; null if there is none. */
      readonly key: string | null
      readonly sensor_name: string | null
      /** The run of the first request. */
      readonly run_id: string
      /** Null if it is not on record. */
      readonly first: ConflictingRequest | null
      readonly later: ConflictingRequest | null
      /** In what the requests differ, as far as they are kept. */
      readonly differs: readonly ComparedPart[]
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

/** In what two requests differ. Of a long list the first names and their number are kept, so a difference may be among the others. */
export function differencesOf(first: RequestSummary | null, later: RequestSummary | null): ComparedPart[] {
  if (first === null || later === null) return []
  // The order in which assets and partitions are named does not matter.
  const texts = (one: RequestSummary) => ({
    assets: JSON.stringify([one.asset_count, [...one.assets].sort()]),
    partitions: JSON.stringify([one.partition_count, one.partitions && [...one.partitions].sort()]),
    labels: JSON.stringify([one.label_count, Object.entries(one.labels).sort()]),
    priority: String(one.priority),
  })
  const [a, b] = [texts(first), texts(later)]
  return comparedParts.filter((part) => a[part] !== b[part])
}

/** The key as whoever asked gave it; null if the run key was not made of one. */
export const givenKey = (runKey: string): string | null =>
  runKey.startsWith('user:') ? runKey.slice('user:'.length) : keyInRunKey(runKey)

/** What to do about a run key that was used for two different things. */
export function adviceForRunKey(runKey: string, later: RequestSummary | null): string {
  if (runKey.startsWith('user:') || runKey.startsWith('manual:'))
    return 'Use another key (servo run --key), or repeat the first request unchanged.'
  if (/^sensor:[^:]*:key:/.test(runKey))
    return 'Give each piece of work its own key in the code of the sensor, for example one that contains the partition.'
  if (runKey.startsWith('rerun:')) return 'Rerun it with another key (servo runs rerun --key).'
  if (runKey.startsWith('sched:')) return 'Trigger the schedule with another key (servo schedules trigger --key).'
  if (later?.source.type === 'sensor')
    return 'The code of the sensor returned different runs for the same evaluation. Return the same runs for the same message or cursor.'
  return 'Use another key, or repeat the first request unchanged.'
}

export const ADVICE_FOR_MESSAGE =
  'The first body counts. Give each message its own id, and send the other body under a new one.'
