import { chainOfAssets } from './lib/chains.ts'
import { dbosFlows, restateFlows } from './lib/durable-flows.ts'
import { end } from './lib/ending.ts'
import { Graphile, type Settings } from './lib/graphile.ts'
import { startPostgres } from './lib/postgres.ts'
import { quick, Report, scaled } from './lib/report.ts'
import { Servo } from './lib/servo.ts'
import { median } from './lib/stats.ts'
import { milliseconds, number, ratio } from './lib/table.ts'

/*
 * One task, then ten thousand, then one that waits for all of them; and the two flows that Windmill's benchmark consists
 * of. Beside both, graphile-worker, which knows no flows: its jobs add what follows, and count what has ended in memory. Beside the
 * flows, DBOS and Restate as well, which are made for them.
 */
const WIDTH = scaled(10_000)
const ROUNDS = quick ? 2 : 5
/** A flow takes a tenth of a second; so many say more. */
const FLOWS = quick ? 3 : 20

const report = new Report('fan-out', `1 → ${WIDTH.toLocaleString('en')} → 1, and Windmill's flows; ${ROUNDS} rounds`)
const postgres = await startPostgres()

async function timed(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now()
  await work()
  return performance.now() - start
}

/** Each says how long it took. */
type Contestants = Record<string, () => Promise<number>>

async function takingTurns(contestants: Contestants, rounds = ROUNDS): Promise<Record<string, number[]>> {
  const times: Record<string, number[]> = Object.fromEntries(Object.keys(contestants).map((name) => [name, []]))
  for (let round = 0; round < rounds; round++) {
    for (const [name, contestant] of Object.entries(contestants)) times[name]?.push(await contestant())
  }
  return times
}

const partitions = Array.from({ length: WIDTH }, (_, i) => `p${i}`)
const fan = `import { asset, keys } from 'servo-flow'
export const first = asset('first', { run: () => undefined })
export const each = asset('each', {
  deps: [first],
  partitions: keys(Array.from({ length: ${WIDTH} }, (_, i) => 'p' + i)),
  run: () => undefined,
})
export const last = asset('last', { deps: [each], run: () => undefined })
`

/** The wide step is added in one statement: nothing that graphile-worker offers is faster. */
async function graphileFan(settings: Settings): Promise<number> {
  let left = 0
  const over = Promise.withResolvers<void>()
  const graphile = await Graphile.start({
    url: postgres.url,
    settings,
    tasks: {
      async first() {
        left = WIDTH
        await graphile.utils.addJobs(partitions.map((key) => ({ identifier: 'each', payload: { key } })))
      },
      async each(_, { addJob }) {
        left -= 1
        if (left === 0) await addJob('last', {})
      },
      last: () => over.resolve(),
    },
  })
  const time = await timed(async () => {
    await graphile.utils.addJob('first', {})
    await over.promise
    await graphile.drained()
  })
  await graphile.stop()
  return time
}

async function fanOut(): Promise<void> {
  const servo = await Servo.open({ assets: fan })
  const peer = 'graphile-worker'
  const times = await takingTurns({
    Servo: () => timed(() => servo.run('*', partitions)),
    [peer]: () => graphileFan('default'),
    'graphile-worker, all in batches': () => graphileFan('fastest'),
  })
  await servo.close()
  report.table(`1 → ${WIDTH.toLocaleString('en')} → 1`, [
    ['', 'time', 'tasks/s', ': graphile-worker'],
    ...Object.entries(times).map(([name, each]) => [
      name,
      milliseconds(median(each)),
      number(((WIDTH + 2) * 1_000) / median(each)),
      ratio(median(times[peer] ?? []) / median(each)),
    ]),
  ])
  for (const [name, each] of Object.entries(times)) report.samples(`fan-out: ${name}`, 'ms', each)
}

function fibo(n: number): number {
  return n <= 1 ? n : fibo(n - 1) + fibo(n - 2)
}

/**
 * Seconds that Windmill publishes for JavaScript and one worker; 2025, Windmill 1.483.1, Temporal 2.34.0, on machines of
 * theirs: https://www.windmill.dev/docs/misc/benchmarks/competitors/results/js
 */
const PUBLISHED = {
  '40 × fibo(10)': { 'Windmill, published': 2.973, 'Windmill dedicated, published': 2.125, 'Temporal, published': 3.063 },
  '10 × fibo(33)': { 'Windmill, published': 0.935, 'Windmill dedicated, published': 1.077, 'Temporal, published': 0.966 },
}

/** One step after the other in one flow on one worker, as in Windmill's benchmark; what a step returns is kept. */
async function windmillFlow(title: keyof typeof PUBLISHED, steps: number, n: number): Promise<void> {
  const preamble = 'const fibo = (n) => (n <= 1 ? n : fibo(n - 1) + fibo(n - 2))'
  const servo = await Servo.open({ assets: chainOfAssets('fibo', steps, `fibo(${n})`, preamble), concurrency: 1 })
  const graphile = await Graphile.chains(postgres.url, 1, () => fibo(n))
  await servo.run('*')
  await graphile.run(steps)
  await dbos.run(steps, n)
  await restate.run(steps, n)
  const times = await takingTurns(
    {
      Servo: () => timed(() => servo.run('*')),
      'graphile-worker': () => timed(() => graphile.run(steps)),
      DBOS: () => timed(() => dbos.run(steps, n)),
      Restate: () => timed(() => restate.run(steps, n)),
      'the computing alone': () =>
        timed(async () => {
          for (let i = 0; i < steps; i++) fibo(n)
        }),
    },
    FLOWS,
  )
  await servo.close()
  await graphile.stop()
  const seconds = Object.entries(times).map(([name, each]) => [name, median(each) / 1_000] as const)
  const ours = median(times['Servo'] ?? []) / 1_000
  report.table(`${title}, one after the other, one worker`, [
    ['', 'time', ': Servo'],
    ...[...seconds, ...Object.entries(PUBLISHED[title])].map(([name, each]) => [name, `${number(each)} s`, ratio(each / ours)]),
  ])
  for (const [name, each] of Object.entries(times)) report.samples(`${title}: ${name}`, 'ms', each)
}

await fanOut()
const dbos = await dbosFlows(postgres.url, fibo)
const restate = await restateFlows(fibo)
await windmillFlow('40 × fibo(10)', 40, 10)
await windmillFlow('10 × fibo(33)', 10, 33)
report.note('Published figures come from other machines: they tell an order of magnitude.')
report.finish()
await end()
