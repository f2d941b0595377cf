import { zoneNamed } from '../../cron/zone-clocks.ts'
import { toIso, toMs } from '../../lib/time.ts'
import type { FactsByCode, ReasonCode } from './reasons.ts'

/** Says a moment in the zone of an answer. */
export type Say = (moment: string | null) => string

export type WordsOf<C extends ReasonCode> = { readonly [K in C]: (facts: Readonly<FactsByCode[K]>, when: Say) => string }

/** Says moments as clocks of a zone show them: `05:00` on the day in question, `2025-01-14 05:00` on any other. */
export function momentsIn(timezone: string, day: string | null): Say {
  const zone = zoneNamed(timezone)
  const shown = (moment: string): string => toIso(zone.wallAt(toMs(moment)))
  const today = day === null ? undefined : shown(day).slice(0, 10)
  return (moment) => {
    if (moment === null) return 'an unknown time'
    const text = shown(moment)
    const time = text.slice(11, 19)
    const clock = time.endsWith(':00') ? time.slice(0, 5) : time
    return text.slice(0, 10) === today ? clock : `${text.slice(0, 10)} ${clock}`
  }
}

export const headLine = (text: string): string => text.split('\n', 1)[0] ?? ''

/** The first line of an error with the first place in the author's own code: `no such column (assets/jobs.ts:12)`. */
export function withPlace(error: string): string {
  const [, place] = /^\s*at (?:.*\()?([^()\s]+?:\d+)(?::\d+)?\)?$/m.exec(error) ?? []
  return place === undefined ? headLine(error) : `${headLine(error)} (${place})`
}

/** `: why`, if anybody said why. */
export const saying = (text: string | null): string => (text === null || text === '' ? '' : `: ${headLine(text)}`)

/** `orders[2025-01-01] and 30 more`. */
export function somePartitions(asset: string, keys: readonly string[], count: number): string {
  const [first = ''] = keys
  const more = count > 1 ? ` and ${(count - 1).toLocaleString('en')} more` : ''
  return (first === '' ? asset : `${asset}[${first}]`) + more
}
