import { memoryLease } from '../src/adapters/memory/lease.ts'
import { systemClock } from '../src/adapters/system/clock.ts'
import { assetDefinition } from '../src/contract/project-manifest.ts'
import { scheduleDefinition } from '../src/contract/schedule.ts'
import { cadenceOf } from '../src/cron/cadence.ts'
import { AssetsDefined } from '../src/domain/assets/assets-defined.event.ts'
import { scheduleDefined } from '../src/domain/schedules/declared-schedules.ts'
import { type ScheduleStateRow, scheduleState } from '../src/domain/schedules/schedule-state.table.ts'
import { Paths } from '../src/engine/paths.ts'
import { HOUR_MS, SECOND_MS } from '../src/lib/time.ts'
import { ulidSource } from '../src/lib/ulid.ts'
import { newEvent } from '../src/model/event.ts'
import { localComponents } from '../src/server/components.ts'
import { Orchestrator } from '../src/server/leader/orchestrator.ts'
import { runRequested } from '../src/server/workspace/requests.ts'
import { meteredStore } from './lib/metered-store.ts'
import { processorTime } from './lib/processor-time.ts'
import { rawDisk } from './lib/raw-disk.ts'
import { quick, Report, scaled } from './lib/report.ts'
import { scratchFolder } from './lib/scratch.ts'
import { median, quantile } from './lib/stats.ts'
import { scope } from './lib/stream.ts'
import { milliseconds, number, ratio } from './lib/table.ts'

/*
 * What schedules cost: how late ticks are that are due at once, how long the ticks of an outage take to be on record and
 * in how many writes, what schedules cost that are not due, and how fast ticks are found. Beside the ticks stands one
 * durable file of the same bytes, written with nothing but system calls; beside finding them, a Date that is moved on
 * and read. No attempt runs here: it is about ticks, and the requests and plans of their runs.
 */
const DUE_AT_ONCE = scaled(1_000)
const MISSING = scaled(200)
const MISSED_TICKS = 50
const IDLE_MS = quick ? 3_000 : 20_000
const secret = { id: 'bench', value: 'not a secret, only long enough' }
const ledger = new Paths(scope).ledger

/** A clock of the benchmark's own, which goes as the system's does. */
let offsetMs = 0
const clock = { ...systemClock, now: () => systemClock.now() + offsetMs }
const setClock = (ms: number): void => {
  offsetMs += ms - clock.now()
}

interface Opened {
  readonly folder: string
  readonly orchestrator: Orchestrator
  readonly store: ReturnType<typeof meteredStore>
  /** The last tick of each schedule that is durable, and when it came to be. */
  readonly seen: Map<string, Seen>
  onSeen: (seen: Seen) => void
}

interface Seen {
  readonly tick: number
  readonly at: number
}

async function open(folder: string): Promise<Opened> {
  const local = localComponents(folder, scope)
  const store = meteredStore(local.store)
  const components = { ...local, clock, store, ulid: ulidSource(clock.now, local.random) }
  const lease = await memoryLease({ clock: systemClock }).claim({ name: 'bench', term: 'standing' })
  if (!lease.held) throw new Error('somebody else leads')
  const opened: Pick<Opened, 'seen' | 'onSeen'> = { seen: new Map(), onSeen: () => undefined }
  const orchestrator = await Orchestrator.open({
    components,
    lease,
    instance: components.ulid(),
    workers: { run: () => new Promise(() => undefined), cancel: () => undefined },
    concurrency: () => 0,
    automation: true,
    requestRun: (request) => runRequested(scope, secret, request),
    reactors: [
      {
        watches: scheduleState,
        react: (row) => {
          const { schedule_id, last_scheduled_for } = row as ScheduleStateRow
          // A row is shown again when its run is planned, which is no news of its tick.
          if (last_scheduled_for === null || opened.seen.get(schedule_id)?.tick === last_scheduled_for) return
          const seen = { tick: last_scheduled_for, at: clock.now() }
          opened.seen.set(schedule_id, seen)
          opened.onSeen(seen)
        },
      },
    ],
    onTrouble: (error) => console.error(error),
  })
  return Object.assign(opened, { folder, orchestrator, store })
}

async function declare({ orchestrator }: Opened, count: number, more: object): Promise<void> {
  const definition = assetDefinition.parse({ asset_key: 'orders', kind: 'asset' })
  const assets = [{ asset_key: 'orders', asset_id: 'orders', definition }]
  const schedules = Array.from({ length: count }, (_, index) => {
    const declared = { name: `hourly-${index}`, cron_expressions: ['0 * * * *'], asset_selection: ['orders'], ...more }
    return scheduleDefined(scheduleDefinition.parse(declared), `schedule-${index}`, 'code', `declared-${index}`)
  })
  await orchestrator.submit([newEvent(AssetsDefined, { graph_version: 'g1', assets }), ...schedules])
}

/** Resolves when this tick of so many schedules is durable: when that was, and the processor time of this process until then. */
async function durable(opened: Opened, tick: number, schedules: number): Promise<{ at: number; computed: number }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ at: number; computed: number }>()
  const tooLong = setTimeout(() => reject(new Error('the ticks did not come to an end')), 120_000)
  let missing = schedules
  opened.onSeen = (seen) => {
    if (seen.tick === tick && --missing === 0) resolve({ at: seen.at, computed: processorTime() })
  }
  const last = await promise
  clearTimeout(tooLong)
  return last
}

const segmentsOf = (usage: ReturnType<Opened['store']['take']>) => usage.written.filter(({ path }) => path.startsWith(ledger))

/** What the same bytes cost as durable files, with system calls alone. */
function onRawDisk(segments: readonly { readonly bytes: number }[]): number {
  const disk = rawDisk(scratchFolder('raw'))
  const began = performance.now()
  for (const { bytes } of segments) disk.createSync(new Uint8Array(bytes))
  const took = performance.now() - began
  disk.close()
  return took
}

const report = new Report(
  'schedules',
  `${DUE_AT_ONCE} schedules due at once, ${MISSING} with ${MISSED_TICKS} missed ticks each`,
)

// Due at once, then idle.
const nextHour = Math.ceil(systemClock.now() / HOUR_MS) * HOUR_MS
setClock(nextHour - HOUR_MS / 2)
const busy = await open(scratchFolder('due'))
await declare(busy, DUE_AT_ONCE, {})
busy.orchestrator.projectKnown()
const delays: number[] = []
/** The 95th percentile of each round. All ticks of a round are durable at once, so that this differs little from its median. */
const roundsP95: number[] = []
const computing: number[] = []
const disk: number[] = []
const writes: number[] = []
const WARM_UP = quick ? 1 : 2
for (let round = 1; round <= WARM_UP + (quick ? 1 : 10); round++) {
  const due = nextHour + (round - 1) * HOUR_MS
  // An hour lies between, in which the tables of the hour before are published.
  await systemClock.sleep(quick ? 1_500 : 3_000)
  busy.store.take()
  setClock(due - SECOND_MS)
  busy.orchestrator.loop.nudge()
  const computedBefore = processorTime()
  const last = await durable(busy, due, DUE_AT_ONCE)
  const segments = segmentsOf(busy.store.take())
  if (round <= WARM_UP) continue
  computing.push(last.computed - computedBefore)
  const ofRound = [...busy.seen.values()].map(({ at }) => at - due)
  roundsP95.push(quantile(ofRound, 0.95))
  delays.push(...ofRound)
  writes.push(segments.length)
  disk.push(onRawDisk(segments))
}
// When a busy time is over, its tables are merged once; 15 seconds later, that is.
await systemClock.sleep(quick ? 2_000 : 25_000)
busy.store.take()
const idleCpu = process.cpuUsage()
await systemClock.sleep(IDLE_MS)
const idle = busy.store.take()
report.note(
  `Idle with ${DUE_AT_ONCE} hourly schedules, none due, for ${IDLE_MS / 1_000} s: ${idle.requests} requests to the store, ${number(processorTime(idleCpu))} ms of processor time.`,
)
await busy.orchestrator.close()

const first = nextHour + WARM_UP * HOUR_MS
const ticks = await localComponents(busy.folder, scope).sql(
  `select epoch_ms(evaluated_at) - epoch_ms(scheduled_for) as delay from schedule_ticks where epoch_ms(scheduled_for) >= ${first}`,
)
const evaluated = ticks.map(({ delay }) => Number(delay))
if (evaluated.length !== delays.length) throw new Error(`${evaluated.length} ticks on record, ${delays.length} seen`)
report.table(`${DUE_AT_ONCE} schedules due at once, ten times: from the moment of a tick until …`, [
  ['', 'p50', 'p95', 'p95 of the median round', 'computing', 'segments', 'the same bytes on the raw disk', 'p95 : disk'],
  ['it is evaluated', milliseconds(median(evaluated)), milliseconds(quantile(evaluated, 0.95)), '', '', '', '', ''],
  [
    'it is durable with its run request',
    milliseconds(median(delays)),
    milliseconds(quantile(delays, 0.95)),
    milliseconds(median(roundsP95)),
    milliseconds(median(computing)),
    number(median(writes)),
    milliseconds(median(disk)),
    ratio(quantile(delays, 0.95) / median(disk)),
  ],
])
report.samples('tick delay, evaluated', 'ms', evaluated)
report.samples('tick delay', 'ms', delays)
report.samples('tick delay, computing', 'ms', computing)

// Missed.
const rows = [['', 'ticks on record', 'time', 'computing', 'segments', 'all writes', 'the same bytes on the raw disk']]
for (const [name, more] of [
  ['as they come: the newest runs', {}],
  ['all are caught up', { max_catchup_ticks: MISSED_TICKS, catchup_window_minutes: 10_080 }],
] as const) {
  const folder = scratchFolder('missed')
  const before = await open(folder)
  await declare(before, MISSING, more)
  await before.orchestrator.close()
  setClock(clock.now() + MISSED_TICKS * HOUR_MS)
  const last = Math.floor(clock.now() / HOUR_MS) * HOUR_MS
  const after = await open(folder)
  after.store.take()
  const [began, computedBefore] = [clock.now(), processorTime()]
  after.orchestrator.projectKnown()
  const { at, computed } = await durable(after, last, MISSING)
  const took = at - began
  const usage = after.store.take()
  const segments = segmentsOf(usage)
  report.samples(`missed, ${name}`, 'ms', [took])
  rows.push([
    name,
    number(MISSING * MISSED_TICKS),
    milliseconds(took),
    milliseconds(computed - computedBefore),
    number(segments.length),
    number(usage.written.length),
    milliseconds(onRawDisk(segments)),
  ])
  await after.orchestrator.close()
}
report.table(`${MISSING} schedules with ${MISSED_TICKS} missed ticks each, after a start`, rows)

// Finding ticks.
const TICKS = 10_000
const found = [['', 'ticks a second', 'a Date moved on and read, a second', 'ratio']]
for (const [cron, timezone] of [
  ['*/5 * * * *', 'UTC'],
  ['*/5 * * * *', 'Europe/Berlin'],
  ['30 2 * * MON-FRI', 'America/New_York'],
  ['*/10 * * * * *', 'Europe/Berlin'],
] as const) {
  const [ours, dates]: [number[], number[]] = [[], []]
  for (let round = 0; round < 7; round++) {
    const cadence = cadenceOf({ cron_expressions: [cron], timezone, start_at: Date.UTC(2020, 0, 1, 0, 0, round), end_at: null })
    let began = performance.now()
    let tick: number | undefined = Date.UTC(2025, 0, 1)
    for (let i = 0; i < TICKS && tick !== undefined; i++) tick = cadence.after(tick)
    ours.push((TICKS * 1_000) / (performance.now() - began))
    began = performance.now()
    const date = new Date(Date.UTC(2025, 0, 1))
    let sum = 0
    for (let i = 0; i < TICKS; i++) {
      date.setUTCMinutes(date.getUTCMinutes() + 5)
      sum += date.getUTCHours() + date.getUTCDay()
    }
    if (sum > 0) dates.push((TICKS * 1_000) / (performance.now() - began))
  }
  report.samples(`found, ${cron} ${timezone}`, 'ticks a second', ours)
  found.push([`${cron} ${timezone}`, number(median(ours)), number(median(dates)), ratio(median(ours) / median(dates))])
}
report.table(`${TICKS} ticks found one after the other, by a cadence that is new`, found)
report.finish()
process.exit(0)
