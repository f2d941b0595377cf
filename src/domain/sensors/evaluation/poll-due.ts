import { sha256Bytes } from '../../../lib/hash.ts'
import { MINUTE_MS, SECOND_MS } from '../../../lib/time.ts'
import { standstillOf, type WatchedSensor } from './standstill.ts'

/** After a start, polls that are overdue are made within a minute, and not all at once. */
const SPREAD_MS = MINUTE_MS

export interface PollToCome extends WatchedSensor {
  /** When this process began to poll. */
  readonly startedAt: number
  /** The last poll of this process, which may be one that found nothing and is not on record yet. */
  readonly polledAt?: number | undefined
  readonly now: number
}

/** When a sensor is polled next: in the past if it is due, undefined while it is not to be polled at all. */
export function nextPollAt(poll: PollToCome): number | undefined {
  const { definition, state, everything, startedAt, polledAt, now } = poll
  const { config, defined_at, min_interval_sec, sensor_id } = definition
  if (config.type !== 'poll' || standstillOf(poll) !== undefined) return undefined
  const interval = Math.max(config.every_ms, min_interval_sec * SECOND_MS)
  // What lies in the future was recorded by a clock that was ahead: time goes on from where the clock is now.
  const latest = (...moments: readonly (number | null | undefined)[]): number | undefined => {
    const past = moments.filter((at) => at != null && at <= now)
    return past.length === 0 ? undefined : Math.max(...past.map(Number))
  }
  const last = latest(state?.last_evaluation_at, polledAt)
  const rested = latest(state?.last_error_at) === undefined ? 0 : (state?.backoff_until ?? 0)
  const due = Math.max(last === undefined ? Math.min(defined_at, now) : last + interval, rested)
  // Everything that was due while nothing was polled would be due in the same moment.
  const since = latest(startedAt, everything?.status_changed_at)
  return since !== undefined && due < since ? since + spreadMs(sensor_id, interval) : due
}

/** The next poll as users see it, whether a server runs or not: now if it is due. */
export function nextPollFrom(poll: Omit<PollToCome, 'startedAt'>): number | undefined {
  const due = nextPollAt({ ...poll, startedAt: 0 })
  return due === undefined ? undefined : Math.max(due, poll.now)
}

/** How long after a start a sensor is polled first: the same at each start, and for each sensor another. */
function spreadMs(sensorId: string, interval: number): number {
  const [a = 0, b = 0, c = 0] = sha256Bytes(sensorId)
  return Math.floor((((a << 16) | (b << 8) | c) / 0x1000000) * Math.min(interval, SPREAD_MS))
}
