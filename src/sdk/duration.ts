import { ServoError } from '../lib/error.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../lib/time.ts'

/** `'500ms'`, `'30s'`, `'5m'`, `'2h'`, `'7d'` */
export type Duration = `${number}${'ms' | 's' | 'm' | 'h' | 'd'}`

const unitMs: Readonly<Record<string, number>> = { ms: 1, s: SECOND_MS, m: MINUTE_MS, h: HOUR_MS, d: DAY_MS }

/** Milliseconds of a duration, which is checked; `of` names the option, for the error. */
export function durationMs(duration: unknown, option: string): number {
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(String(duration))
  if (!match)
    throw new ServoError('invalid', 'bad_duration', `${option} must be a duration, not ${JSON.stringify(duration)}`, {
      hint: "Write a number and a unit, such as '500ms', '30s', '5m', '2h' or '7d'.",
    })
  return Math.round(Number(match[1]) * (unitMs[match[2] ?? ''] ?? 0))
}

export interface Bounds {
  readonly least: Duration
  readonly most: Duration
}

/** Bounds of a worker's silence: a day is as good as never, and less than a second is too short for three heartbeats. */
export const heartbeatBounds: Bounds = { least: '1s', most: '1d' }

/** Bounds of the time that code of a sensor, or a condition of a schedule, may take: nothing waits for it for hours. */
export const evaluationBounds: Bounds = { least: '100ms', most: '10m' }

/** Milliseconds of a duration that makes sense for this option only between the bounds. */
export function durationWithin(duration: unknown, { least, most }: Bounds, option: string): number {
  const ms = durationMs(duration, option)
  if (ms >= durationMs(least, option) && ms <= durationMs(most, option)) return ms
  throw new ServoError('invalid', 'bad_duration', `${option} is out of range: ${JSON.stringify(duration)}`, {
    hint: `Write a duration from '${least}' to '${most}'.`,
  })
}
