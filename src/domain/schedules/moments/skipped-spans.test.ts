import fc from 'fast-check'
import { expect, test } from 'vitest'
import { HOUR_MS, MINUTE_MS } from '../../../lib/time.ts'
import { ScheduleSimulation } from '../../../testing/schedule-simulation.ts'

const START = Date.UTC(2025, 2, 28, 12)
const fives = { cron_expressions: ['*/5 * * * *'] }

/** What may come between the moment at which a request looks for the record of a tick and the moment at which the tick is written. */
const between: Readonly<Record<string, (simulation: ScheduleSimulation) => void>> = {
  nothing: () => undefined,
  'a resume': (simulation) => simulation.setPaused(false),
  'a resume and a pause': (simulation) => {
    simulation.setPaused(false)
    simulation.setPaused(true)
  },
  'a change': (simulation) => simulation.define({ ...fives, labels: { team: 'shop' } }),
  'another cron': (simulation) => simulation.define({ cron_expressions: ['*/7 * * * *'] }),
  'a deletion': (simulation) => simulation.remove(),
  'an hour': (simulation) => simulation.run(60 * MINUTE_MS),
}

test.each(Object.keys(between))(
  '[A77] a tick of a pause that somebody asks for is counted once, as triggered, with %s in between',
  (name) => {
    const property = fc.property(
      fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 4 }),
      fc.integer({ min: 0, max: 2 }),
      (asked, first) => {
        const simulation = new ScheduleSimulation(START)
        simulation.define(fives)
        simulation.run(1)
        simulation.setPaused(true)
        simulation.run(47 * MINUTE_MS)
        const writes = asked.map((tick) => simulation.askFor(START + 5 * tick * MINUTE_MS))
        // Some are written before, and so those that follow were not told of what they do.
        for (const write of writes.slice(0, first)) write()
        between[name]?.(simulation)
        for (const write of writes.slice(first)) write()
        simulation.setPaused(false)
        simulation.run(0)
        expect(new Set(simulation.triggered())).toEqual(new Set(asked.map((tick) => START + 5 * tick * MINUTE_MS)))
        expect(simulation.triggered()).toHaveLength(new Set(asked).size)
        // Asserts of each record that it has as many ticks as it says.
        simulation.skipped()
      },
    )
    fc.assert(property, { numRuns: 50 })
  },
)

test.each([1, 3])(
  '[A15] %i of the ticks that a clock ahead skipped, and that are skipped again in their time, have the reason of then',
  (hours) => {
    const simulation = new ScheduleSimulation(START)
    simulation.define({ cron_expressions: ['0 * * * *'], max_catchup_ticks: 0 })
    simulation.setPaused(true)
    simulation.run(0)
    simulation.jump(hours * HOUR_MS + 30 * MINUTE_MS)
    expect(simulation.ticks()).toMatchObject([{ tick_count: hours, reason_code: 'paused' }])
    simulation.jump(-hours * HOUR_MS - 30 * MINUTE_MS)
    simulation.setPaused(false)
    // Earlier than the clock that was ahead: the time of a record does not tell which of two is the later decision.
    simulation.wait(hours * HOUR_MS + 20 * MINUTE_MS)
    simulation.run(0)
    expect(simulation.ticks()).toMatchObject([{ tick_count: hours, reason_code: 'catchup_limit', status: 'skipped' }])
    expect(simulation.state().decided_until).toBe(START + hours * HOUR_MS)
    const [recorded] = simulation.ticks()
    simulation.wait(1)
    simulation.run(0)
    expect(simulation.ticks()).toEqual([recorded])
  },
)
