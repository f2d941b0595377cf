import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../src/lib/time.ts'
import { ScheduleSimulation, ticksBetween } from '../../src/testing/schedule-simulation.ts'

// Both clocks change in Europe and America within the days around it.
const START = Date.UTC(2025, 2, 28, 12)
const crons = ['*/5 * * * *', '0 * * * *', '30 2 * * *', '*/20 * * * * *']
/** So long that it ticks some dozens of times. */
const longest: Readonly<Record<string, number>> = { '*/5 * * * *': 6 * HOUR_MS, '*/20 * * * * *': 15 * MINUTE_MS }

type Step =
  | { readonly kind: 'runs' | 'is down' | 'clock ahead' | 'clock back'; readonly ms: number }
  | { readonly kind: 'pause' | 'resume' | 'rename' | 'delete' | 'declare' | 'crash' }

const duration = fc.oneof(
  fc.integer({ min: 1, max: 90 * SECOND_MS }),
  fc.integer({ min: 1, max: 6 * HOUR_MS }),
  fc.integer({ min: 1, max: 3 * DAY_MS }),
)
const passing = fc.constantFrom('runs' as const, 'is down' as const, 'clock ahead' as const, 'clock back' as const)
const changing = fc.constantFrom('pause', 'resume', 'rename', 'delete', 'declare', 'crash')
const histories = fc.record({
  cron: fc.constantFrom(...crons),
  zone: fc.constantFrom('UTC', 'Europe/Berlin', 'America/New_York'),
  windowMinutes: fc.constantFrom(0, 90, 1_440, 10_080),
  max: fc.constantFrom(0, 1, 3, 50),
  onResume: fc.boolean(),
  steps: fc.array(
    fc.oneof(
      { weight: 5, arbitrary: fc.record({ kind: passing, ms: duration }) as fc.Arbitrary<Step> },
      { weight: 2, arbitrary: fc.record({ kind: changing }) as fc.Arbitrary<Step> },
    ),
    { minLength: 1, maxLength: 12 },
  ),
})
type History = typeof histories extends fc.Arbitrary<infer H> ? H : never

/** Time as the clock of the server showed it, and what the schedule was meanwhile. */
interface Passed {
  readonly from: number
  readonly until: number
  /** Earlier than `until` if the clock was set back before a server ran again: what lies beyond did not pass for any server. */
  surely: number
  /** The latest that the clock had shown before. What it shows again while no server runs is decided already. */
  readonly known: number
  readonly mode: 'ticking' | 'paused' | 'off'
  readonly isRunning: boolean
}

function play({ cron, zone, windowMinutes, max, onResume, steps }: History) {
  const simulation = new ScheduleSimulation(START)
  const moments = { cron_expressions: [cron], timezone: zone, start_at: null, end_at: null }
  const passed: Passed[] = []
  let [isPaused, isRemoved, isRunning, latest] = [false, false, false, START]
  const declare = () => {
    isRemoved = false
    simulation.define({
      cron_expressions: [cron],
      timezone: zone,
      catchup_window_minutes: windowMinutes,
      max_catchup_ticks: max,
      catch_up_on_resume: onResume,
    })
  }
  const note = (since: Pick<Passed, 'from' | 'known' | 'isRunning'>): void => {
    latest = Math.max(latest, simulation.now)
    const lastRun = passed.findLastIndex((one) => one.isRunning)
    if (!isRunning) for (const one of passed.slice(lastRun + 1)) one.surely = Math.min(one.surely, simulation.now)
    passed.push({
      ...since,
      until: simulation.now,
      surely: simulation.now,
      mode: isRemoved ? 'off' : isPaused ? 'paused' : 'ticking',
    })
  }
  const pass = (ms: number, runs: boolean): void => {
    const [from, known] = [simulation.now, latest]
    if (runs) simulation.run(ms)
    else simulation.wait(ms)
    isRunning = runs
    note({ from, known, isRunning })
  }
  const take = (step: Step): void => {
    if ('ms' in step) {
      const ms = Math.min(step.ms, longest[cron] ?? step.ms)
      if (step.kind === 'runs') pass(ms, true)
      else if (step.kind === 'is down') pass(ms, false)
      else {
        const by = step.kind === 'clock ahead' ? ms : -ms
        const [from, known] = [simulation.now, latest]
        if (isRunning) simulation.jump(by)
        else simulation.wait(by)
        note({ from, known, isRunning: false })
      }
    } else if (step.kind === 'pause' || step.kind === 'resume') {
      isPaused = step.kind === 'pause'
      simulation.setPaused(isPaused)
    } else if (step.kind === 'crash') {
      const wasRunning = isRunning
      simulation.wait(0)
      if (wasRunning) simulation.run(0)
    } else if (step.kind === 'delete') {
      simulation.remove()
      isRemoved = true
    } else {
      if (step.kind === 'rename') simulation.name += '!'
      declare()
    }
  }
  declare()
  for (const step of steps) take(step)
  // In the end the schedule is on, and the clock goes beyond all that it ever showed.
  take({ kind: 'declare' })
  take({ kind: 'resume' })
  take({ kind: 'runs', ms: 0 })
  const beyond = latest
  if (simulation.now < beyond) pass(beyond - simulation.now, false)
  pass(2 * Math.min(DAY_MS, longest[cron] ?? DAY_MS), true)
  return { simulation, moments, passed }
}

describe('a schedule whose clock is set ahead and back, also while no server runs', () => {
  test('[I12][A15][A69] records each tick that passed, repeats none, and runs those that pass while a server runs', () => {
    const property = fc.property(histories, (history) => {
      const { simulation, moments, passed } = play(history)
      const all = simulation.triggered()
      const triggered = new Set(all)
      expect(all.length, 'no tick is triggered twice').toBe(triggered.size)
      expect(simulation.runs().length, 'each has one run').toBe(triggered.size)
      const skipped = simulation.skipped()
      const name = (ticks: readonly number[]) => ticks.map((tick) => new Date(tick).toISOString())
      for (const { from, until, surely, known, mode, isRunning } of passed) {
        if (mode === 'off') continue
        const ticks = ticksBetween(moments, isRunning ? from : Math.max(from, known), surely)
        const lost = ticks.filter((tick) => !triggered.has(tick) && !skipped.has(tick))
        expect(name(lost), `on record, of ${name([from, until])} ${mode}`).toEqual([])
        if (!isRunning || mode !== 'ticking') continue
        const missed = name(ticks.filter((tick) => !triggered.has(tick)))
        expect(missed, `triggered, of ${name([from, until])}`).toEqual([])
      }
      // Nothing runs that lies in no time that passed while the schedule was on.
      const within = (tick: number) => passed.some(({ from, until, mode }) => mode !== 'off' && from < tick && tick <= until)
      expect(name(all.filter((tick) => !within(tick)))).toEqual([])
      expect(name(all.filter((tick) => ticksBetween(moments, tick - 1, tick).length === 0))).toEqual([])
    })
    fc.assert(property, { numRuns: Number(process.env['SERVO_RUNS'] ?? 60) })
  })

  test('[A69][A6] of a second that was missed for years, the newest runs, and the others are a row or two', () => {
    const simulation = new ScheduleSimulation(START)
    simulation.define({ cron_expressions: ['* * * * * *'], timezone: 'Europe/Berlin', max_catchup_ticks: 2 })
    simulation.run(10 * SECOND_MS)
    const down = 3 * 365 * DAY_MS
    simulation.wait(down)
    simulation.run(10 * SECOND_MS)
    const ticks = simulation.ticks()
    const counted = ticks.reduce((sum, tick) => sum + (tick.tick_count ?? 0), 0)
    expect(counted).toBe((down + 20 * SECOND_MS) / SECOND_MS)
    expect(ticks.filter((tick) => tick.status === 'triggered')).toHaveLength(10 + 2 + 1 + 10)
    expect(ticks.filter((tick) => tick.status === 'skipped').length).toBeLessThanOrEqual(2)
  })
})
