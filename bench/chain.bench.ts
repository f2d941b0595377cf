import { chainOfAssets, chainOfValues } from './lib/chains.ts'
import { end } from './lib/ending.ts'
import { type Floor, openFloor } from './lib/floor.ts'
import { Graphile } from './lib/graphile.ts'
import { historyOf } from './lib/kept-history.ts'
import { startPostgres } from './lib/postgres.ts'
import { quick, Report, scaled } from './lib/report.ts'
import { Servo } from './lib/servo.ts'
import { median, quantile } from './lib/stats.ts'
import { milliseconds, ratio } from './lib/table.ts'

/*
 * A hundred tasks one after the other in one run: the time from one task to the next, which is what an orchestrator adds
 * to everything it runs. Beside it, graphile-worker with jobs that each add the next, and what the machine itself needs for
 * a durable write and a message. Then the same with much history in the folder.
 */
const HOPS = 100
const ROUNDS = Math.max(3, scaled(30))
const HISTORIES = [0, scaled(100_000), scaled(1_000_000)]
/** The first chains compile code and open files. */
const WARM_UP = quick ? 1 : 5

const report = new Report('chain', `${ROUNDS} chains of ${HOPS} tasks, taking turns`)

async function hopMs(chain: () => Promise<void>): Promise<number> {
  const start = performance.now()
  await chain()
  return (performance.now() - start) / HOPS
}

/** Everybody's turn, again and again. */
async function takingTurns<Name extends string>(
  chains: Record<Name, () => Promise<void>>,
  eachRound: () => Promise<unknown> = async () => undefined,
): Promise<Record<Name, number[]>> {
  const names = Object.keys(chains) as Name[]
  for (const name of names) for (let i = 0; i < WARM_UP; i++) await chains[name]()
  const times = Object.fromEntries(names.map((name) => [name, [] as number[]])) as Record<Name, number[]>
  for (let round = 0; round < ROUNDS; round++) {
    await eachRound()
    for (const name of names) times[name].push(await hopMs(chains[name]))
  }
  return times
}

async function besideGraphile(): Promise<void> {
  const postgres = await startPostgres()
  const floor = await openFloor()
  const graphile = await Graphile.chains(postgres.url, 4)
  const own = await Servo.open({ assets: chainOfAssets('chain', HOPS) })
  const values = await Servo.open({ assets: chainOfValues('chain', HOPS) })
  const floors: Floor[] = []
  const times = await takingTurns(
    {
      'Servo, assets keep their own data': () => own.run('*'),
      'Servo, each reads the value of the one before': () => values.run('*'),
      'graphile-worker, each job adds the next': () => graphile.run(HOPS),
    },
    async () => floors.push(await floor()),
  )
  await own.close()
  await values.close()
  await graphile.stop()

  const file = median(floors.map(({ fileMs }) => fileMs))
  const roundTrip = median(floors.map(({ roundTripMs }) => roundTripMs))
  const peer = median(times['graphile-worker, each job adds the next'])
  report.table('One hop', [
    ['', 'median', 'p90', ': graphile-worker', ': durable file + round trip'],
    ...Object.entries(times).map(([name, each]) => [
      name,
      milliseconds(median(each)),
      milliseconds(quantile(each, 0.9)),
      ratio(median(each) / peer),
      ratio(median(each) / (file + roundTrip)),
    ]),
    ['one small file, durable', milliseconds(file)],
    ['a word over loopback and back', milliseconds(roundTrip)],
  ])
  for (const [name, each] of Object.entries(times)) report.samples(name, 'ms', each)
}

async function withHistory(): Promise<void> {
  const servos = new Map<string, Servo>()
  for (const tasks of HISTORIES) {
    const history = tasks === 0 ? undefined : await historyOf(tasks)
    const servo = await Servo.open({ assets: chainOfAssets('chain', HOPS), ...(history !== undefined && { history }) })
    servos.set(tasks.toLocaleString('en'), servo)
  }
  const times = await takingTurns(
    Object.fromEntries([...servos].map(([tasks, servo]) => [tasks, () => servo.run('key:"chain/0"+')])),
  )
  const first = median(times[[...servos.keys()][0] ?? ''] ?? [])
  report.table('One hop, with history in the folder', [
    ['tasks', 'median', 'p90', ': without'],
    ...Object.entries(times).map(([tasks, each]) => [
      tasks,
      milliseconds(median(each)),
      milliseconds(quantile(each, 0.9)),
      ratio(median(each) / first),
    ]),
  ])
  for (const [tasks, each] of Object.entries(times)) report.samples(`after ${tasks} tasks`, 'ms', each)
}

await besideGraphile()
await withHistory()
report.finish()
await end()
