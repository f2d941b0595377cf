import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { DAY_MS } from '../lib/time.ts'
import { Cadence } from './cadence.ts'
import { parseCron } from './parse-cron.ts'
import { ticksFrom } from './ticks.ts'

const BEGIN = Date.UTC(2025, 2, 20)
const END = BEGIN + 12 * DAY_MS
const expressions = ['0 * * * *', '*/7 2-4 * * *', '30 2 * * *', '0 0 * * MON', '15 10 1 * *', '0 0,12 * * *', '59 59 23 * * *']

/** Every tick of every expression, one by one. */
function enumerated(cron: readonly string[], zone: string): number[] {
  const all = new Set<number>()
  for (const text of cron) {
    for (const tick of ticksFrom(parseCron(text), zone, BEGIN)) {
      if (tick > END) break
      all.add(tick)
    }
  }
  return [...all].sort((a, b) => a - b)
}

describe('the cadence of a schedule', () => {
  test('is the ticks of all its expressions, each instant once, within its bounds', () => {
    const moment = fc.integer({ min: BEGIN, max: END })
    const property = fc.property(
      fc.uniqueArray(fc.constantFrom(...expressions), { minLength: 1, maxLength: 4 }),
      fc.constantFrom('UTC', 'Europe/Berlin', 'Australia/Lord_Howe'),
      fc.option(moment),
      fc.option(moment),
      fc.tuple(moment, moment),
      fc.nat({ max: 5 }),
      (cron_expressions, timezone, start_at, end_at, [one, other], most) => {
        const cadence = new Cadence({ cron_expressions, timezone, start_at, end_at })
        const ticks = enumerated(cron_expressions, timezone).filter(
          (tick) => tick >= (start_at ?? BEGIN) && tick <= (end_at ?? END),
        )
        const [from, to] = [Math.min(one, other), Math.max(one, other)]
        const inside = ticks.filter((tick) => tick > from && tick <= to)
        expect(cadence.count(from, to)).toBe(inside.length)
        expect(cadence.newest(most, from, to)).toEqual(most === 0 ? [] : inside.slice(-most))
        if (inside[0] !== undefined) expect(cadence.after(from)).toBe(inside[0])
        if (inside.length > 0) expect(cadence.until(to)).toBe(inside.at(-1))
        for (const tick of inside.slice(0, 3)) expect(cadence.has(tick)).toBe(true)
        expect(cadence.has(from + 1)).toBe(ticks.includes(from + 1))
      },
    )
    fc.assert(property, { numRuns: 200 })
  })

  test('counts a year of seconds without enumerating it', () => {
    const cadence = new Cadence({
      cron_expressions: ['* * * * * *', '0 5 * * *'],
      timezone: 'UTC',
      start_at: null,
      end_at: null,
    })
    expect(cadence.count(Date.UTC(2025, 0, 1) - 1, Date.UTC(2026, 0, 1) - 1)).toBe(365 * 86_400)
  })

  test('gives the same answer however often, and among however many others, it is asked', () => {
    const definition = {
      cron_expressions: ['0 * * * *', '*/25 8-9 * * *'],
      timezone: 'Europe/Berlin',
      start_at: null,
      end_at: null,
    }
    const moment = fc.integer({ min: 0, max: 20 }).map((n) => Date.UTC(2025, 2, 30) + n * 600_000)
    const question = fc.tuple(fc.constantFrom('after', 'until'), moment)
    const asked = new Cadence(definition)
    const property = fc.property(fc.array(question, { maxLength: 20 }), (questions) => {
      for (const [ask, ms] of questions) {
        const fresh = new Cadence(definition)
        expect(ask === 'after' ? asked.after(ms) : asked.until(ms)).toBe(ask === 'after' ? fresh.after(ms) : fresh.until(ms))
      }
    })
    fc.assert(property)
  })
})
