import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseCron } from '../../cron/parse-cron.ts'
import { ticksFrom } from '../../cron/ticks.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../lib/time.ts'
import { ScheduleSimulation } from '../../testing/schedule-simulation.ts'

const START = Date.UTC(2025, 2, 28, 12)
const crons = ['0 * * * *', '*/5 * * * *', '30 2 * * *', '0 0 * * MON', '*/20 * * * * *']
/** So long that it ticks some dozens of times. */
const longest: Readonly<Record<string, number>> = { '*/5 * * * *': DAY_MS / 4, '*/20 * * * * *': HOUR_MS / 4 }
const zones = ['UTC', 'Europe/Berlin', 'America/New_York']

/** What a person or the machine does, and for how long. */
type Step =
  | { readonly kind: 'runs' | 'is down'; readonly ms: number }
  | { readonly kind: 'pause' | 'resume' | 'disable' | 'enable' }
  | { readonly kind: 'define'; readonly cron: string; readonly zone: string }

interface Plan {
  readonly cron: string
  readonly zone: string
  readonly windowMinutes: number
  readonly max: number
  readonly onResume: boolean
  readonly steps: readonly Step[]
}

const duration = fc.oneof(
  fc.integer({ min: 1, max: 90 * SECOND_MS }),
  fc.integer({ min: 1, max: 6 * HOUR_MS }),
  fc.integer({ min: 1, max: 9 * DAY_MS }),
)
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constantFrom('runs' as const, 'is down' as const), ms: duration }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constantFrom('pause', 'resume', 'disable', 'enable') }) as fc.Arbitrary<Step> },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('define' as const),
      cron: fc.constantFrom(...crons),
      zone: fc.constantFrom(...zones),
    }),
  },
)
const plans: fc.Arbitrary<Plan> = fc.record({
  cron: fc.constantFrom(...crons),
  zone: fc.constantFrom(...zones),
  windowMinutes: fc.constantFrom(0, 1, 90, 1_440, 10_080),
  max: fc.constantFrom(0, 1, 3, 50),
  onResume: fc.boolean(),
  steps: fc.array(step, { minLength: 1, maxLength: 10 }),
})

/** A stretch in which nothing about the schedule changed. */
interface Stretch {
  readonly from: number
  until: number
  readonly mode: 'ticking' | 'paused' | 'off'
  readonly cron: string
  readonly zone: string
}

/** What must be on record, worked out tick by tick from what was done: the rules of the manual, without any state. */
function expected(plan: Plan, stretches: readonly Stretch[], runs: readonly { from: number; until: number }[]) {
  const triggered = new Set<number>()
  const skipped = new Set<number>()
  const lookAfter = (tick: number): number | undefined => {
    for (const { from, until } of runs) if (tick <= until) return Math.max(tick, from)
    return undefined
  }
  for (const [index, { from, until, mode, cron, zone }] of stretches.entries()) {
    const isResumed = mode === 'paused' && plan.onResume && stretches[index + 1]?.mode === 'ticking'
    if (mode === 'off') continue
    const ticks: number[] = []
    for (const tick of ticksFrom(parseCron(cron), zone, from + 1)) {
      if (tick > until) break
      ticks.push(tick)
    }
    // When a stretch is over, what became of its ticks is decided at the first look after its end at the latest.
    const looks = new Map<number, number[]>()
    for (const tick of ticks) {
      const look = lookAfter(isResumed ? until : tick)
      if (look !== undefined) looks.set(look, [...(looks.get(look) ?? []), tick])
    }
    for (const [look, due] of looks) {
      const newest = due.at(-1) ?? 0
      const onTime = mode === 'ticking' && look - newest < MINUTE_MS
      const missed = onTime ? due.slice(0, -1) : due
      const mayCatchUp = plan.windowMinutes > 0 && plan.max > 0 && (mode === 'ticking' || isResumed)
      const inWindow = missed.filter((tick) => tick >= look - plan.windowMinutes * MINUTE_MS)
      const chosen = mayCatchUp ? inWindow.slice(-plan.max) : []
      for (const tick of [...chosen, ...(onTime ? [newest] : [])]) triggered.add(tick)
      for (const tick of due) if (!triggered.has(tick)) skipped.add(tick)
    }
  }
  return { triggered, skipped }
}

function play(plan: Plan) {
  const simulation = new ScheduleSimulation(START)
  const definition = {
    timezone: plan.zone,
    catchup_window_minutes: plan.windowMinutes,
    max_catchup_ticks: plan.max,
    catch_up_on_resume: plan.onResume,
  }
  let [cron, zone] = [plan.cron, plan.zone]
  let [isPaused, isEnabled] = [false, true]
  const stretches: Stretch[] = []
  const runs: { from: number; until: number }[] = []
  const begin = () => {
    const mode = isEnabled ? (isPaused ? 'paused' : 'ticking') : 'off'
    stretches.push({ from: simulation.now, until: simulation.now, mode, cron, zone })
  }
  const declare = () => simulation.define({ ...definition, cron_expressions: [cron], timezone: zone, enabled: isEnabled })
  declare()
  begin()
  // The ticks of a pause are complete on record when it is over.
  const ending: Step[] = [{ kind: 'resume' }, { kind: 'runs', ms: 0 }]
  for (const step of [...plan.steps, ...ending]) {
    const current = stretches.at(-1)
    if (step.kind === 'runs' || step.kind === 'is down') {
      const from = simulation.now
      const ms = Math.min(step.ms, longest[cron] ?? step.ms)
      if (step.kind === 'runs') simulation.run(ms)
      else simulation.wait(ms)
      if (step.kind === 'runs') runs.push({ from, until: simulation.now })
      if (current !== undefined) current.until = simulation.now
      continue
    }
    const before = JSON.stringify([isPaused, isEnabled, cron, zone])
    if (step.kind === 'pause' || step.kind === 'resume') {
      isPaused = step.kind === 'pause'
      simulation.setPaused(isPaused)
    } else {
      if (step.kind === 'define') [cron, zone] = [step.cron, step.zone]
      else isEnabled = step.kind === 'enable'
      declare()
    }
    if (JSON.stringify([isPaused, isEnabled, cron, zone]) !== before) begin()
  }
  return { simulation, ...expected(plan, stretches, runs) }
}

const ascending = (ticks: Iterable<number>): number[] => [...ticks].sort((a, b) => a - b)

describe('the schedule controller', () => {
  test('[I12] records every tick once, triggered or skipped with a reason, as the rules say: through outages, pauses and changes', () => {
    const property = fc.property(plans, (plan) => {
      const { simulation, triggered, skipped } = play(plan)
      expect(ascending(simulation.triggered())).toEqual(ascending(triggered))
      const recorded = simulation.skipped()
      expect(ascending(recorded).filter((tick) => !triggered.has(tick))).toEqual(ascending(skipped))
    })
    fc.assert(property, { numRuns: Number(process.env['SERVO_RUNS'] ?? 300) })
  })
})
