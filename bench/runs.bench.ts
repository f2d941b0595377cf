import { end } from './lib/ending.ts'
import { type Floor, openFloor } from './lib/floor.ts'
import { Graphile, type Settings } from './lib/graphile.ts'
import { inFlight } from './lib/in-flight.ts'
import { startPostgres } from './lib/postgres.ts'
import { treeCpuMs } from './lib/processes.ts'
import { Report, scaled } from './lib/report.ts'
import { Servo } from './lib/servo.ts'
import { mean, median, quantile, sum } from './lib/stats.ts'
import { milliseconds, number, ratio } from './lib/table.ts'

/*
 * Runs of one task, from the request until its result is durable, in real worker processes, beside jobs of graphile-worker
 * on a PostgreSQL whose data is on the same disk and that syncs what it commits. Everybody takes turns.
 */
const RUNS = scaled(50_000)
/** Long enough that each has publishes in it, which take at most an eighth of the time. */
const ROUNDS = 5
const PER_ROUND = Math.ceil(RUNS / ROUNDS)
const AT_A_TIME = 24
/** Before anything is counted: code is compiled, connections are open. */
const WARM_UP = 200
/** Jobs that graphile-worker is given in one statement when it may be. */
const ADDED_TOGETHER = 500

interface Round {
  readonly perSecond: number
  readonly latenciesMs: readonly number[]
  /** Of this process, and of those that work for it. */
  readonly cpuMs: number
  readonly elsewhereCpuMs: number
  readonly segments?: number
  readonly seconds: number
  readonly publishingMs?: number
}

const report = new Report('runs', `${RUNS.toLocaleString('en')} runs of one task, ${AT_A_TIME} in flight, in ${ROUNDS} rounds`)
const postgres = await startPostgres()
const floor = await openFloor()

const ownData = `import { asset } from 'servo-flow'\nexport const one = asset('one', { run: () => undefined })\n`
const value = `import { asset } from 'servo-flow'\nexport const one = asset('one', { run: () => 1 })\n`
const fileValue = `import { asset, io } from 'servo-flow'
const text = io<number>('text', { write: String, read: (bytes) => Number(new TextDecoder().decode(bytes)) })
export const one = asset('one', { io: text, run: () => 1 })
`
const FIRST = 'Servo, asset keeps its own data'
const UNPUBLISHED = 'Servo, own data, no tables written'
const PEER = 'graphile-worker, 24 in flight'
const servos: Record<string, Servo> = {
  [FIRST]: await Servo.open({ assets: ownData }),
  'Servo, value recorded with its run': await Servo.open({ assets: value }),
  'Servo, value stored as a file': await Servo.open({ assets: fileValue }),
}

const contestants: Record<string, () => Promise<Round>> = {
  ...Object.fromEntries(Object.entries(servos).map(([name, servo]) => [name, () => servoRound(servo)])),
  [PEER]: () => graphileRound('default', (graphile) => inFlight(PER_ROUND, AT_A_TIME, () => graphile.run('one'))),
  'graphile-worker, added 24 at a time': () =>
    graphileRound('default', async ({ utils }) => {
      await inFlight(PER_ROUND, AT_A_TIME, () => utils.addJob('one', {}))
      return []
    }),
  'graphile-worker, all in batches': () =>
    graphileRound('fastest', async ({ utils }) => {
      for (let added = 0; added < PER_ROUND; added += ADDED_TOGETHER) {
        const count = Math.min(ADDED_TOGETHER, PER_ROUND - added)
        await utils.addJobs(Array.from({ length: count }, () => ({ identifier: 'one', payload: {} })))
      }
      return []
    }),
}

async function servoRound(servo: Servo): Promise<Round> {
  servo.take()
  servo.publishingMs = 0
  // Nobody waits for the tables, but whose turn it is next shall not pay for them.
  const publish = servo === servos[UNPUBLISHED] ? undefined : (): Promise<void> => servo.orchestrator.publish()
  const round = await measured(process.pid, () => inFlight(PER_ROUND, AT_A_TIME, () => servo.run('one')), publish)
  return { ...round, segments: servo.take().segments, publishingMs: servo.publishingMs }
}

async function graphileRound(settings: Settings, work: (graphile: Graphile) => Promise<number[]>): Promise<Round> {
  const { url, pid } = postgres
  const graphile = await Graphile.start({ url, settings, tasks: { one: () => undefined } })
  await inFlight(WARM_UP, AT_A_TIME, () => graphile.run('one'))
  const round = await measured(pid, async () => {
    const times = await work(graphile)
    await graphile.drained()
    return times
  })
  await graphile.stop()
  return round
}

/**
 * `helpers` is the process whose tree works for us; if that is ourselves, our children do. What is done `behind` takes
 * processor time like everything else, but nobody's time.
 */
async function measured(
  helpers: number,
  work: () => Promise<readonly number[]>,
  behind?: () => Promise<unknown>,
): Promise<Round> {
  const elsewhere = (): number => treeCpuMs(helpers) - (helpers === process.pid ? ownCpuMs() : 0)
  const [ownBefore, elsewhereBefore] = [ownCpuMs(), elsewhere()]
  const start = performance.now()
  const latenciesMs = await work()
  const seconds = (performance.now() - start) / 1_000
  await behind?.()
  return {
    perSecond: PER_ROUND / seconds,
    latenciesMs,
    cpuMs: ownCpuMs() - ownBefore,
    elsewhereCpuMs: elsewhere() - elsewhereBefore,
    seconds,
  }
}

function ownCpuMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1_000
}

for (const servo of Object.values(servos)) await inFlight(WARM_UP, AT_A_TIME, () => servo.run('one'))
const rounds = new Map<string, Round[]>(Object.keys(contestants).map((name) => [name, []]))
const floors: Floor[] = []
for (let round = 0; round < ROUNDS; round++) {
  floors.push(await floor())
  for (const [name, contestant] of Object.entries(contestants)) rounds.get(name)?.push(await contestant())
}

// After the others: whoever never writes tables keeps everything in memory, and all of this process would collect its garbage.
const unpublished = await Servo.open({ assets: ownData, publishes: false })
await inFlight(WARM_UP, AT_A_TIME, () => unpublished.run('one'))
servos[UNPUBLISHED] = unpublished
rounds.set(UNPUBLISHED, [])
for (let round = 0; round < ROUNDS; round++) rounds.get(UNPUBLISHED)?.push(await servoRound(unpublished))

const of = (name: string, figure: (round: Round) => number): number => median((rounds.get(name) ?? []).map(figure))
const perSecond = (name: string): number => of(name, (round) => round.perSecond)
report.table('Runs, or jobs', [
  ['', 'per second', ': graphile-worker', 'p50', 'p99', 'processor, this process', 'others', 'together'],
  ...[...rounds.keys()].map((name) => [
    name,
    number(perSecond(name)),
    ratio(perSecond(name) / perSecond(PEER)),
    milliseconds(of(name, (round) => quantile(round.latenciesMs, 0.5))),
    milliseconds(of(name, (round) => quantile(round.latenciesMs, 0.99))),
    milliseconds(of(name, (round) => round.cpuMs / PER_ROUND)),
    milliseconds(of(name, (round) => round.elsewhereCpuMs / PER_ROUND)),
    milliseconds(of(name, (round) => (round.cpuMs + round.elsewhereCpuMs) / PER_ROUND)),
  ]),
])
report.note('Processor time is for one run; others are the worker processes, or those of PostgreSQL.')

const total = (name: string, figure: (round: Round) => number | undefined): number =>
  sum((rounds.get(name) ?? []).map((round) => figure(round) ?? 0))
report.table('How Servo wrote it down', [
  ['', 'segments/s', 'runs/segment', 'publishing : time'],
  ...Object.keys(servos).map((name) => [
    name,
    number(total(name, (round) => round.segments) / total(name, (round) => round.seconds)),
    number((PER_ROUND * ROUNDS) / total(name, (round) => round.segments)),
    `${number(total(name, (round) => round.publishingMs) / total(name, (round) => round.seconds) / 10)} %`,
  ]),
])
const share = 1 - total(UNPUBLISHED, (round) => round.cpuMs) / total(FIRST, (round) => round.cpuMs)
report.note(`Writing tables took ${number(100 * share)} % of the orchestrator's processor time, by the difference of the two.`)
report.table('What no run can be faster than', [
  ['', 'median', 'mean'],
  ...(['fileMs', 'roundTripMs'] as const).map((key) => [
    key === 'fileMs' ? 'one small file, durable' : 'a word over loopback and back',
    milliseconds(median(floors.map((each) => each[key]))),
    milliseconds(mean(floors.map((each) => each[key]))),
  ]),
])
for (const [name, each] of rounds) {
  report.samples(
    `${name}: per second`,
    '1/s',
    each.map((round) => round.perSecond),
  )
}
report.finish()
await end()
