import fc from 'fast-check'
import { expect, test } from 'vitest'
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../src/lib/time.ts'
import { ScheduleSimulation, ticksBetween } from '../../src/testing/schedule-simulation.ts'

// Both clocks change in Europe and America within the days around it.
const START = Date.UTC(2025, 2, 28, 12)
/** Crons that may follow each other, and how long a step may be so that they tick some dozens of times. */
const paces = [
  { crons: ['0 * * * *', '30 2 * * *', '15 */6 * * *'], longest: 3 * DAY_MS },
  { crons: ['*/5 * * * *', '* * * * *', '7-20 * * * *'], longest: 2 * HOUR_MS },
  { crons: ['*/20 * * * * *', '* * * * * *', '10 * * * * *'], longest: 2 * MINUTE_MS },
]

interface Cadenced {
  readonly cron: string
  readonly zone: string
}

type Step =
  | { readonly kind: 'runs' | 'is down' | 'clock ahead' | 'clock back'; readonly ms: number }
  | { readonly kind: 'pause' | 'resume' | 'rename' | 'delete' | 'declare' | 'crash' }
  | ({ readonly kind: 'define' } & Cadenced)

const passing = fc.constantFrom('runs' as const, 'is down' as const, 'clock ahead' as const, 'clock back' as const)
const changing = fc.constantFrom('pause', 'resume', 'rename', 'delete', 'declare', 'crash')
const histories = fc.constantFrom(...paces).chain(({ crons, longest }) => {
  const zone = fc.constantFrom('UTC', 'Europe/Berlin', 'America/New_York')
  const cadence: fc.Arbitrary<Cadenced> = fc.record({ cron: fc.constantFrom(...crons), zone })
  const ms = fc.oneof(fc.integer({ min: 1, max: 90 * SECOND_MS }), fc.integer({ min: 1, max: longest }))
  const step: fc.Arbitrary<Step> = fc.oneof(
    { weight: 6, arbitrary: fc.record({ kind: passing, ms }) as fc.Arbitrary<Step> },
    { weight: 3, arbitrary: fc.record({ kind: changing }) as fc.Arbitrary<Step> },
    { weight: 1, arbitrary: cadence.map((other): Step => ({ kind: 'define', ...other })) },
  )
  return fc.record({
    cadence,
    windowMinutes: fc.constantFrom(0, 1, 90, 1_440, 10_080),
    max: fc.constantFrom(0, 1, 3, 50),
    onResume: fc.boolean(),
    ending: fc.constant(longest / 2),
    steps: fc.array(step, { minLength: 1, maxLength: 14 }),
  })
})
type History = typeof histories extends fc.Arbitrary<infer H> ? H : never

type Mode = 'ticking' | 'paused' | 'off'

/** A stretch of time of which no server has decided the ticks yet. */
interface Stretch {
  readonly after: number
  readonly until: number
  readonly mode: Mode
  readonly isResumed: boolean
  readonly cadence: Cadenced
}

/**
 * The rules of the manual, tick by tick and with nothing clever. Ticks are due that lie after a floor and not after the clock. The floor is
 * the latest tick on record, or the moment at which the schedule was made, enabled, paused, resumed or got other moments. What lies beyond
 * the clock was left by one that was ahead: then time goes on from where the clock is, what was skipped beyond counts for nothing, and
 * what was triggered is not triggered again.
 */
class Manual {
  readonly triggered = new Set<number>()
  /** Skipped, and not by a clock that turned out to be ahead. */
  readonly skipped = new Set<number>()
  /** Skipped at any time, as the clock was then. */
  readonly everSkipped = new Set<number>()
  readonly #rules: Pick<History, 'windowMinutes' | 'max' | 'onResume'>
  #cadence: Cadenced
  #mode: Mode = 'ticking'
  #floor: number
  #past: Stretch[] = []

  constructor(rules: Pick<History, 'windowMinutes' | 'max' | 'onResume'>, cadence: Cadenced, now: number) {
    this.#rules = rules
    this.#cadence = cadence
    this.#floor = now
  }

  /** Somebody changes when the schedule ticks, whether a server runs or not. */
  change(now: number, mode: Mode, cadence: Cadenced): void {
    if (mode === this.#mode && cadence.cron === this.#cadence.cron && cadence.zone === this.#cadence.zone) return
    this.#see(now)
    const isResumed = this.#mode === 'paused' && mode === 'ticking'
    if (this.#mode !== 'off')
      this.#past.push({ after: this.#floor, until: now, mode: this.#mode, isResumed, cadence: this.#cadence })
    this.#floor = now
    this.#mode = mode
    this.#cadence = cadence
  }

  /** A server runs while the clock goes from one moment to another. */
  run(from: number, until: number): void {
    this.look(from)
    if (this.#mode === 'off') return
    for (const tick of ticks(this.#cadence, from, until)) this.look(tick)
    this.look(until)
  }

  /** A server looks at the clock. */
  look(now: number): void {
    this.#settlePast(now)
    if (this.#mode === 'off') return
    this.#see(now)
    // What becomes of the ticks of a pause that is caught up is known at its end.
    if (this.#mode === 'paused' && this.#rules.onResume) return
    this.#decide({ after: this.#floor, until: now, mode: this.#mode, isResumed: false, cadence: this.#cadence }, now)
    this.#floor = now
  }

  #settlePast(now: number): void {
    for (const stretch of this.#past.splice(0)) this.#decide({ ...stretch, until: Math.min(stretch.until, now) }, now)
  }

  /** The clock shows this moment. */
  #see(now: number): void {
    if (now >= this.#floor) return
    this.#floor = now
    this.#past = this.#past.map((stretch) => ({ ...stretch, until: Math.min(stretch.until, now) }))
    for (const tick of this.skipped) if (tick > now) this.skipped.delete(tick)
  }

  #decide({ after, until, mode, isResumed, cadence }: Stretch, now: number): void {
    const all = ticks(cadence, after, until)
    const newest = all.at(-1)
    if (newest === undefined) return
    const { windowMinutes, max, onResume } = this.#rules
    const isOnTime = mode === 'ticking' && now - newest < MINUTE_MS
    const missed = (isOnTime ? all.slice(0, -1) : all).filter((tick) => !this.triggered.has(tick))
    const mayCatchUp = windowMinutes > 0 && max > 0 && (mode === 'ticking' || (isResumed && onResume))
    const inWindow = missed.filter((tick) => tick >= now - windowMinutes * MINUTE_MS)
    const chosen = new Set(mayCatchUp ? inWindow.slice(-max) : [])
    if (isOnTime) chosen.add(newest)
    for (const tick of all) {
      if (this.triggered.has(tick)) continue
      if (chosen.has(tick)) this.triggered.add(tick)
      else {
        this.skipped.add(tick)
        this.everSkipped.add(tick)
      }
    }
    for (const tick of this.triggered) this.skipped.delete(tick)
  }
}

const ticks = ({ cron, zone }: Cadenced, after: number, until: number): number[] =>
  ticksBetween({ cron_expressions: [cron], timezone: zone, start_at: null, end_at: null }, after, until)

function play({ cadence: first, windowMinutes, max, onResume, steps, ending }: History) {
  const simulation = new ScheduleSimulation(START)
  const manual = new Manual({ windowMinutes, max, onResume }, first, START)
  let cadence: Cadenced = first
  let [isPaused, isRemoved, isRunning, latest] = [false, false, false, START]
  const declare = () => {
    isRemoved = false
    simulation.define({
      cron_expressions: [cadence.cron],
      timezone: cadence.zone,
      catchup_window_minutes: windowMinutes,
      max_catchup_ticks: max,
      catch_up_on_resume: onResume,
    })
  }
  const pass = (ms: number, runs: boolean): void => {
    const from = simulation.now
    if (runs) simulation.run(ms)
    else simulation.wait(ms)
    isRunning = runs
    if (runs) manual.run(from, simulation.now)
    latest = Math.max(latest, simulation.now)
  }
  const take = (step: Step): void => {
    if ('ms' in step) {
      const { ms } = step
      if (step.kind === 'runs') pass(ms, true)
      else if (step.kind === 'is down') pass(ms, false)
      else {
        const by = step.kind === 'clock ahead' ? ms : -ms
        if (isRunning) {
          simulation.jump(by)
          manual.look(simulation.now)
        } else simulation.wait(by)
        latest = Math.max(latest, simulation.now)
      }
      return
    }
    if (step.kind === 'crash') {
      const wasRunning = isRunning
      simulation.wait(0)
      if (wasRunning) pass(0, true)
      return
    }
    if (step.kind === 'pause' || step.kind === 'resume') {
      isPaused = step.kind === 'pause'
      simulation.setPaused(isPaused)
    } else if (step.kind === 'delete') {
      simulation.remove()
      isRemoved = true
    } else {
      if (step.kind === 'rename') simulation.name += '!'
      if (step.kind === 'define') cadence = { cron: step.cron, zone: step.zone }
      declare()
    }
    manual.change(simulation.now, isRemoved ? 'off' : isPaused ? 'paused' : 'ticking', cadence)
    if (isRunning) manual.look(simulation.now)
  }
  declare()
  for (const step of steps) take(step)
  // In the end the schedule is on, and the clock goes beyond all that it ever showed.
  take({ kind: 'declare' })
  take({ kind: 'resume' })
  take({ kind: 'runs', ms: 0 })
  if (simulation.now < latest) pass(latest - simulation.now, false)
  pass(ending, true)
  return { simulation, manual }
}

const named = (all: Iterable<number>) => [...all].sort((a, b) => a - b).map((tick) => new Date(tick).toISOString())

test('[I12][A15][A69] whatever the clock shows, ticks are on record as the rules say: through steps of the clock, outages, pauses and changes', () => {
  const property = fc.property(histories, (history) => {
    const { simulation, manual } = play(history)
    expect(named(simulation.triggered())).toEqual(named(manual.triggered))
    const skipped = simulation.skipped()
    expect(named([...manual.skipped].filter((tick) => !skipped.has(tick))), 'on record').toEqual([])
    expect(named([...skipped].filter((tick) => !manual.everSkipped.has(tick))), 'skipped without a reason').toEqual([])
  })
  fc.assert(property, { numRuns: Number(process.env['SERVO_RUNS'] ?? 40) })
})
