import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, toIso } from '../../lib/time.ts'
import { type Moments, ScheduleSimulation, ticksBetween } from '../../testing/schedule-simulation.ts'

const START = Date.UTC(2025, 2, 28, 12)
const crons = ['0 * * * *', '*/5 * * * *', '30 2 * * *', '0 0 * * MON', '*/20 * * * * *']
/** So long that it ticks some dozens of times. */
const longest: Readonly<Record<string, number>> = { '*/5 * * * *': DAY_MS / 4, '*/20 * * * * *': HOUR_MS / 4 }
const zones = ['UTC', 'Europe/Berlin', 'America/New_York']

/** What a person or the machine does, and for how long. */
type Step =
  | { readonly kind: 'runs' | 'is down'; readonly ms: number }
  | { readonly kind: 'pause' | 'resume' | 'disable' | 'enable' | 'rename' | 'delete' | 'declare' }
  | ({ readonly kind: 'define' } & Cadenced)

interface Cadenced {
  readonly crons: readonly string[]
  readonly zone: string
  /** Hours after the start of the history; null for no bound. */
  readonly starts: number | null
  readonly ends: number | null
}

interface Plan extends Cadenced {
  readonly overlap: 'queue' | 'skip' | 'replace' | null
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
const cadenced: fc.Arbitrary<Cadenced> = fc.record({
  crons: fc.uniqueArray(fc.constantFrom(...crons), { minLength: 1, maxLength: 2 }),
  zone: fc.constantFrom(...zones),
  starts: fc.option(fc.integer({ min: 0, max: 72 }), { freq: 4 }),
  ends: fc.option(fc.integer({ min: 73, max: 400 }), { freq: 4 }),
})
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constantFrom('runs' as const, 'is down' as const), ms: duration }) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constantFrom('pause', 'resume', 'disable', 'enable', 'rename', 'delete', 'declare'),
    }) as fc.Arbitrary<Step>,
  },
  { weight: 1, arbitrary: cadenced.map((cadence) => ({ kind: 'define' as const, ...cadence })) },
)
const rules: fc.Arbitrary<Omit<Plan, keyof Cadenced>> = fc.record({
  overlap: fc.constantFrom(null, null, 'queue', 'skip', 'replace'),
  windowMinutes: fc.constantFrom(0, 1, 90, 1_440, 10_080),
  max: fc.constantFrom(0, 1, 3, 50),
  onResume: fc.boolean(),
  steps: fc.array(step, { minLength: 1, maxLength: 10 }),
})
const plans: fc.Arbitrary<Plan> = fc.tuple(cadenced, rules).map(([cadence, rest]) => ({ ...cadence, ...rest }))

/** A stretch in which the schedule ticked at the same moments, whatever else was changed. */
interface Stretch {
  readonly from: number
  until: number
  readonly mode: 'ticking' | 'paused' | 'off'
  readonly moments: Moments
}

/** What must be on record, worked out tick by tick from what was done: the rules of the manual, without any state. */
function expected(plan: Plan, stretches: readonly Stretch[], runs: readonly { from: number; until: number }[]) {
  const triggered = new Set<number>()
  const skipped = new Set<number>()
  const lookAfter = (tick: number): number | undefined => {
    for (const { from, until } of runs) if (tick <= until) return Math.max(tick, from)
    return undefined
  }
  for (const [index, { from, until, mode, moments }] of stretches.entries()) {
    const isResumed = mode === 'paused' && plan.onResume && stretches[index + 1]?.mode === 'ticking'
    if (mode === 'off') continue
    const ticks = ticksBetween(moments, from, until)
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
      for (const tick of [...chosen, ...(onTime ? [newest] : [])]) {
        // No run ends here, so one that overlaps with none is the first of all.
        if (plan.overlap !== 'skip' || triggered.size === 0) triggered.add(tick)
      }
      for (const tick of due) if (!triggered.has(tick)) skipped.add(tick)
    }
  }
  return { triggered, skipped }
}

const momentsOf = ({ crons, zone, starts, ends }: Cadenced): Moments => ({
  cron_expressions: crons,
  timezone: zone,
  start_at: starts === null ? null : START + starts * HOUR_MS,
  end_at: ends === null ? null : START + ends * HOUR_MS,
})

function play(plan: Plan) {
  const simulation = new ScheduleSimulation(START)
  const definition = {
    catchup_window_minutes: plan.windowMinutes,
    max_catchup_ticks: plan.max,
    catch_up_on_resume: plan.onResume,
    overlap: plan.overlap,
  }
  let cadence: Cadenced = plan
  let [isPaused, isEnabled, isRemoved] = [false, true, false]
  const stretches: Stretch[] = []
  const runs: { from: number; until: number }[] = []
  const begin = () => {
    const mode = isEnabled && !isRemoved ? (isPaused ? 'paused' : 'ticking') : 'off'
    stretches.push({ from: simulation.now, until: simulation.now, mode, moments: momentsOf(cadence) })
  }
  const declare = () => {
    isRemoved = false
    const { cron_expressions, timezone, start_at, end_at } = momentsOf(cadence)
    const iso = (ms: number | null) => (ms === null ? null : toIso(ms))
    const bounds = { start_at: iso(start_at), end_at: iso(end_at) }
    simulation.define({ ...definition, ...bounds, cron_expressions: [...cron_expressions], timezone, enabled: isEnabled })
  }
  declare()
  begin()
  // The ticks of a pause are complete on record when it is over.
  const ending: Step[] = [{ kind: 'resume' }, { kind: 'runs', ms: 0 }]
  for (const step of [...plan.steps, ...ending]) {
    const current = stretches.at(-1)
    if (step.kind === 'runs' || step.kind === 'is down') {
      const from = simulation.now
      const ms = Math.min(step.ms, ...cadence.crons.map((cron) => longest[cron] ?? step.ms))
      if (step.kind === 'runs') simulation.run(ms)
      else simulation.wait(ms)
      if (step.kind === 'runs') runs.push({ from, until: simulation.now })
      if (current !== undefined) current.until = simulation.now
      continue
    }
    const regimeNow = () => JSON.stringify([isPaused, isEnabled, isRemoved, momentsOf(cadence)])
    const before = regimeNow()
    if (step.kind === 'pause' || step.kind === 'resume') {
      isPaused = step.kind === 'pause'
      simulation.setPaused(isPaused)
    } else {
      if (step.kind === 'define') cadence = step
      else if (step.kind === 'rename') simulation.name += '!'
      else if (step.kind === 'enable' || step.kind === 'disable') isEnabled = step.kind === 'enable'
      if (step.kind === 'delete') {
        simulation.remove()
        isRemoved = true
      } else declare()
    }
    if (regimeNow() !== before) begin()
  }
  return { simulation, ...expected(plan, stretches, runs) }
}

const ascending = (ticks: Iterable<number>): number[] => [...ticks].sort((a, b) => a - b)

describe('the schedule controller', () => {
  test('[I12] records every tick once, triggered or skipped with a reason, as the rules say: through outages, pauses and changes', () => {
    const property = fc.property(plans, (plan) => {
      const { simulation, triggered, skipped } = play(plan)
      expect(ascending(simulation.triggered())).toEqual(ascending(triggered))
      expect(ascending(simulation.skipped())).toEqual(ascending(skipped))
      const recorded = simulation.ticks().reduce((sum, tick) => sum + (tick.tick_count ?? 0), 0)
      expect(recorded, 'no tick is on record twice').toBe(triggered.size + skipped.size)
    })
    fc.assert(property, { numRuns: Number(process.env['SERVO_RUNS'] ?? 150) })
  })
})

describe('a tick of a schedule', () => {
  const hourly = { cron_expressions: ['0 * * * *'] }

  test('[A1][A11] and the run it asks for are decided together, with the selection, labels and priority of the schedule', () => {
    const simulation = new ScheduleSimulation(START)
    simulation.define({ ...hourly, labels: { team: 'shop' }, priority: 7 })
    simulation.run(HOUR_MS)
    const [run] = simulation.runs()
    expect(simulation.ticks()).toMatchObject([
      { status: 'triggered', cause: 'cron', run_id: run?.run_id, run_key: run?.run_key },
    ])
    expect(run).toMatchObject({ asset_selection: ['orders'], labels: { team: 'shop' }, priority: 7, trigger_type: 'schedule' })
    expect(simulation.ticks()[0]?.request_fingerprint).toBe(run?.request_fingerprint)
  })

  test('[A10] comes earlier when the schedule is changed so: no alarm is left from before', () => {
    const simulation = new ScheduleSimulation(START)
    simulation.define({ cron_expressions: ['0 0 * * *'] })
    simulation.run(MINUTE_MS)
    simulation.define({ cron_expressions: ['*/5 * * * *'] })
    simulation.run(5 * MINUTE_MS)
    expect(simulation.triggered()).toEqual([START + 5 * MINUTE_MS])
  })

  test('[A11] that cannot ask for anything has failed, with the reason; the schedule goes on', () => {
    const simulation = new ScheduleSimulation(START)
    simulation.define({ ...hourly, asset_selection: ['ordrs'] })
    simulation.run(2 * HOUR_MS)
    expect(simulation.ticks()).toMatchObject([
      { status: 'failed', reason_code: 'bad_selection', reason: expect.stringContaining('orders') },
      { status: 'failed' },
    ])
    expect(simulation.runs()).toEqual([])
  })

  test('[A12] runs the window that has just closed; with an offset one before it; in other dimensions all keys', () => {
    const simulation = new ScheduleSimulation(START)
    const daily = { type: 'daily', start: '2025-03-01' }
    simulation.assets({
      days: daily,
      shops: { type: 'multi', dimensions: { date: daily, shop: { type: 'keys', keys: ['north', 'south'] } } },
      regions: { type: 'keys', keys: ['eu', 'us'] },
    })
    const asked = (selection: string[], more: object = {}): unknown => {
      simulation.define({ cron_expressions: ['0 5 * * *'], asset_selection: selection, ...more })
      simulation.run(DAY_MS)
      return simulation.runs().at(-1)?.partition_selection
    }
    expect(asked(['days'])).toEqual(['2025-03-28'])
    expect(asked(['days'], { partition_offset: 2 })).toEqual(['2025-03-27'])
    expect(asked(['shops'])).toEqual(['date=2025-03-30'])
    expect(asked(['regions'])).toEqual(['*'])
    expect(asked(['orders'])).toBeNull()
  })

  test.each([[['days', 'hours']], [['hours', 'days']]])(
    '[A12] of %j runs the shortest of the windows that have just closed',
    (selected) => {
      const simulation = new ScheduleSimulation(START)
      const start = '2025-03-01'
      simulation.assets({ days: { type: 'daily', start }, hours: { type: 'hourly', start } }, { hours: 'days' })
      simulation.define({ cron_expressions: ['0 0 * * *'], asset_selection: selected })
      simulation.run(DAY_MS)
      expect(simulation.runs().map((run) => run.partition_selection)).toEqual([['2025-03-28T23']])
    },
  )

  test.each([
    ['orders', 1],
    ['days', 3],
  ])('[I12] of %s that was missed: unless told, the newest %d are caught up', (asset, most) => {
    const simulation = new ScheduleSimulation(START)
    simulation.assets({ orders: null, days: { type: 'daily', start: '2025-03-01' } })
    simulation.define({ ...hourly, asset_selection: [asset] })
    simulation.wait(6.5 * HOUR_MS)
    simulation.run(0)
    expect(simulation.ticks().filter((tick) => tick.cause === 'catch_up')).toHaveLength(most)
  })

  test('[A12] is skipped while no window has closed', () => {
    const simulation = new ScheduleSimulation(START)
    simulation.assets({ days: { type: 'daily', start: '2025-03-30' } })
    simulation.define({ cron_expressions: ['0 5 * * *'], asset_selection: ['days'] })
    simulation.run(4 * DAY_MS)
    expect(simulation.ticks().map((tick) => [tick.status, tick.reason_code, tick.partition_selection])).toEqual([
      ['skipped', 'no_window', null],
      ['skipped', 'no_window', null],
      ['triggered', null, ['2025-03-30']],
      ['triggered', null, ['2025-03-31']],
    ])
  })

  test.each([
    [undefined, ['triggered', 'triggered'], [null, null], 0],
    ['queue', ['triggered', 'triggered'], [null, 1], 0],
    ['skip', ['triggered', 'skipped'], [null], 0],
    ['replace', ['triggered', 'triggered'], [null, 1], 1],
  ] as const)('[A13] while a run of an earlier tick is unfinished, with overlap %s', (overlap, statuses, waits, cancelled) => {
    const simulation = new ScheduleSimulation(START)
    simulation.define({ ...hourly, ...(overlap && { overlap }) })
    simulation.run(2 * HOUR_MS)
    expect(simulation.ticks().map((tick) => tick.status)).toEqual(statuses)
    const runs = simulation.runs()
    expect(runs.map((run) => run.after_run_ids?.length ?? null)).toEqual(waits)
    expect(runs.filter((run) => run.cancel_requested_at !== null)).toHaveLength(cancelled)
    if (overlap === 'skip') expect(simulation.ticks()[1]?.reason).toContain(runs[0]?.run_id)
  })

  test('[A13] a thousand runs of a schedule may queue; further ticks are skipped and say so', () => {
    const simulation = new ScheduleSimulation(START)
    simulation.define({ ...hourly, cron_expressions: ['* * * * * *'], overlap: 'queue' })
    simulation.run(1_003_000)
    const statuses = simulation.ticks().map((tick) => tick.status)
    expect([statuses.indexOf('skipped'), statuses.lastIndexOf('triggered')]).toEqual([1_000, 999])
    expect(simulation.ticks().at(-1)?.reason).toBe('1000 runs of earlier ticks had not ended')
  })

  test('[A15] a clock that was ahead and is set back repeats no run, and what it had skipped runs in its time', () => {
    const simulation = new ScheduleSimulation(START)
    simulation.define({ ...hourly, max_catchup_ticks: 1 })
    simulation.run(HOUR_MS)
    simulation.run(0)
    // Five hours ahead: 18:00 is on time, 17:00 is caught up, and those before are skipped.
    simulation.jump(5 * HOUR_MS)
    const ahead = simulation.runs().length
    expect(ahead).toBe(3)
    simulation.jump(-5 * HOUR_MS)
    expect(simulation.runs()).toHaveLength(ahead)
    simulation.run(6 * HOUR_MS)
    expect(simulation.triggered().sort()).toEqual([1, 2, 3, 4, 5, 6, 7].map((hour) => START + hour * HOUR_MS))
    expect(simulation.runs()).toHaveLength(7)
  })
})

describe('a change of a schedule', () => {
  const hourly = { cron_expressions: ['0 * * * *'], max_catchup_ticks: 5 }
  const catchingUp = { ...hourly, catch_up_on_resume: true }
  const hours = (...of: number[]) => of.map((hour) => START + hour * HOUR_MS)
  const started = (definition: Parameters<ScheduleSimulation['define']>[0]) => {
    const simulation = new ScheduleSimulation(START)
    simulation.run(0)
    simulation.define(definition)
    return simulation
  }

  test('[A15] resuming after the clock was set back runs no tick of the future', () => {
    const simulation = started(catchingUp)
    simulation.setPaused(true)
    simulation.run(6 * HOUR_MS + MINUTE_MS)
    simulation.jump(-4 * HOUR_MS)
    simulation.setPaused(false)
    expect(ascending(simulation.triggered())).toEqual(hours(1, 2))
    simulation.run(2 * HOUR_MS)
    expect(ascending(simulation.triggered())).toEqual(hours(1, 2, 3, 4))
  })

  test('[A15] a change that a clock ahead recorded while no server ran makes no tick of the future due', () => {
    const simulation = new ScheduleSimulation(START)
    simulation.define(hourly)
    simulation.wait(6 * HOUR_MS)
    simulation.define({ ...hourly, cron_expressions: ['30 * * * *'] })
    simulation.wait(-4 * HOUR_MS)
    simulation.run(0)
    expect(ascending(simulation.triggered())).toEqual(hours(1, 2))
  })

  test('[I12] another cron ticks from the change on, also after the clock was set back', () => {
    const simulation = started({ cron_expressions: ['0 0 1 1 *'], max_catchup_ticks: 3 })
    simulation.run(MINUTE_MS)
    simulation.jump(-2 * HOUR_MS)
    simulation.run(40 * MINUTE_MS)
    simulation.define({ cron_expressions: ['*/5 * * * *'], max_catchup_ticks: 3 })
    simulation.run(0)
    expect(simulation.ticks()).toEqual([])
    simulation.run(5 * MINUTE_MS)
    expect(simulation.triggered()).toEqual([START - 75 * MINUTE_MS])
  })

  test.each([
    ['labels', (simulation: ScheduleSimulation) => simulation.define({ ...catchingUp, labels: { team: 'shop' } })],
    ['the description', (simulation: ScheduleSimulation) => simulation.define({ ...catchingUp, description: 'new' })],
    [
      'the name',
      (simulation: ScheduleSimulation) => {
        simulation.name = 'hourly'
        simulation.define(catchingUp)
      },
    ],
  ])('[A76] of %s while it is paused leaves the pause as it is: what was paused before is caught up too', (_, edit) => {
    const simulation = started(catchingUp)
    simulation.setPaused(true)
    simulation.run(2 * HOUR_MS)
    const since = simulation.state().paused_since
    edit(simulation)
    expect(simulation.state().paused_since).toBe(since)
    simulation.run(HOUR_MS)
    expect(simulation.ticks()).toEqual([])
    simulation.setPaused(false)
    expect(ascending(simulation.triggered())).toEqual(hours(1, 2, 3))
  })

  test('[A76] that leaves its moments alone begins no new count of the ticks to catch up on, and each runs as it was then', () => {
    const simulation = new ScheduleSimulation(START)
    simulation.define({ ...hourly, max_catchup_ticks: 3 })
    simulation.wait(3.5 * HOUR_MS)
    simulation.define({ ...hourly, max_catchup_ticks: 3, labels: { team: 'shop' } })
    simulation.wait(2 * HOUR_MS)
    simulation.run(0)
    expect(ascending(simulation.triggered())).toEqual(hours(3, 4, 5))
    expect(simulation.runs().map((run) => run.labels)).toEqual([{}, { team: 'shop' }, { team: 'shop' }])
    expect(ascending(simulation.skipped())).toEqual(hours(1, 2))
  })

  test('[I12] of the cron in the same moment as another leaves the ticks before both to be caught up on by themselves', () => {
    const simulation = new ScheduleSimulation(START)
    simulation.define({ ...hourly, max_catchup_ticks: 2 })
    simulation.wait(3.5 * HOUR_MS + MINUTE_MS)
    simulation.define({ ...hourly, max_catchup_ticks: 2, labels: { team: 'shop' } })
    simulation.define({ ...hourly, max_catchup_ticks: 2, cron_expressions: ['30 * * * *'] })
    simulation.wait(3 * HOUR_MS)
    simulation.run(0)
    expect(ascending(simulation.triggered())).toEqual(hours(2, 3, 5.5, 6.5))
  })

  test('[A6] the ticks of a pause that is caught up are on record once, skipped or triggered', () => {
    const simulation = started({ ...catchingUp, max_catchup_ticks: 2 })
    simulation.setPaused(true)
    simulation.run(6 * HOUR_MS)
    simulation.setPaused(false)
    const ticks = simulation.ticks().sort((a, b) => (a.scheduled_for ?? 0) - (b.scheduled_for ?? 0))
    expect(ticks.map(({ status, reason_code, tick_count }) => [status, reason_code, tick_count])).toEqual([
      ['skipped', 'paused', 4],
      ['triggered', null, 1],
      ['triggered', null, 1],
    ])
  })
})
