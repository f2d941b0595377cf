import { globSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { ServoClient } from '../src/client/client.ts'
import { MINUTE_MS, SECOND_MS } from '../src/lib/time.ts'
import { localComponents, secretsFile } from '../src/server/components.ts'
import { end } from './lib/ending.ts'
import { inFlight } from './lib/in-flight.ts'
import { quick, Report, scaled } from './lib/report.ts'
import { scratchFolder } from './lib/scratch.ts'
import { Servo } from './lib/servo.ts'
import { builtServo, ServoDev } from './lib/servo-dev.ts'
import { median, quantile } from './lib/stats.ts'
import { megabytes, milliseconds, number, ratio } from './lib/table.ts'

/*
 * A backfill of a million partitions of an asset that does nothing, in chunks of a thousand, through `servo dev` and over HTTP: how
 * long until it is created, how large the event is, how fast its partitions are made, how long somebody waits who looks at it
 * meanwhile, how soon a pause takes effect, and how much memory the server needs. Beside it stand runs of one task and a fan-out of
 * ten thousand, as `runs` and `fan-out` measure them, by the same package in the same hour.
 */
const PARTITIONS = scaled(1_000_000)
const CHUNK = 1_000
const AT_A_TIME = 2
const CREATED = quick ? 3 : 11
const PAUSES = quick ? 1 : 5
const LOOK_EVERY_MS = 100
const START = Date.UTC(2020, 0, 1)
const ASSET = `import { asset, minutely } from 'servo-flow'
export const minutes = asset('minutes', { partitions: minutely({ start: '2020-01-01T00:00' }), run: () => undefined })
`

const report = new Report(
  'backfills',
  `${PARTITIONS.toLocaleString('en')} partitions in chunks of ${CHUNK.toLocaleString('en')}, ${AT_A_TIME} runs at a time`,
)
const minute = (index: number): string => new Date(START + index * MINUTE_MS).toISOString().slice(0, 16)

function project(): string {
  const folder = scratchFolder('backfill')
  mkdirSync(path.join(folder, 'assets'))
  symlinkSync(path.resolve(import.meta.dirname, '../node_modules'), path.join(folder, 'node_modules'))
  const config = `import { defineConfig } from 'servo-flow'\nexport default defineConfig({ project: 'bench', dirs: ['assets'] })\n`
  writeFileSync(path.join(folder, 'servo.config.ts'), config)
  writeFileSync(path.join(folder, 'assets/bench.ts'), ASSET)
  return folder
}

async function timed<T>(work: () => Promise<T>): Promise<{ ms: number; answer: T }> {
  const began = performance.now()
  const answer = await work()
  return { ms: performance.now() - began, answer }
}

/** The most memory that a process ever had, and what it has now. */
function memoryOf(pid: number): { peak: number; now: number } {
  const status = readFileSync(`/proc/${pid}/status`, 'latin1')
  const bytes = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1] ?? 0) * 1_024
  return { peak: bytes('VmHWM'), now: bytes('VmRSS') }
}

const folder = project()
const dev = new ServoDev(await builtServo(), folder)
const ready = await dev.hears(({ type }) => type === 'ready')
if (ready.ok !== true) throw new Error(JSON.stringify(ready))
const data = path.join(folder, '.servo')
const token: string = JSON.parse(readFileSync(secretsFile(data), 'utf8')).api_token
const { backfills } = new ServoClient({ url: ready.url as string, token })

const asked = (count: number) => ({
  select: ['minutes'],
  partitions: { type: 'range' as const, start: minute(0), end: minute(count - 1) },
  chunk_size: CHUNK,
  max_concurrent_runs: AT_A_TIME,
})
const OVER = ['SUCCEEDED', 'FAILED', 'CANCELLED']
async function over(id: string, look: (ms: number) => void = () => undefined): Promise<string> {
  for (;;) {
    const { ms, answer } = await timed(() => backfills.get(id))
    look(ms)
    if (OVER.includes(answer.backfill.state)) return answer.backfill.state
    await sleep(LOOK_EVERY_MS)
  }
}

// Created: each is cancelled with its runs before the next, so that every one begins with an idle server.
const creating: number[] = []
const pausing: number[] = []
for (let i = 0; i < CREATED; i++) {
  const { ms, answer } = await timed(() => backfills.create(asked(PARTITIONS), 'bench'))
  if (i > 0) creating.push(ms)
  await backfills.cancel(answer.backfill_id as string, { cancel_runs: true }, 'bench')
  await over(answer.backfill_id as string)
}

// Run to its end, with pauses on the way. The time of the pauses does not count.
const before = memoryOf(dev.pid)
const looks: number[] = []
let pausedMs = 0
const began = performance.now()
const { backfill_id } = await backfills.create(asked(PARTITIONS), 'bench')
const id = backfill_id as string
const ending = over(id, (ms) => looks.push(ms))
for (let i = 0; i < PAUSES; i++) {
  await sleep(quick ? 500 : 5_000)
  const start = performance.now()
  const { state } = await backfills.pause(id, {}, 'bench').catch(() => ({ state: 'SUCCEEDED' }))
  if (state === 'SUCCEEDED') break
  pausing.push(performance.now() - start)
  const { planned_chunks: planned } = (await backfills.get(id)).backfill
  while ((await backfills.get(id)).backfill.active_chunks.length > 0) await sleep(20)
  if ((await backfills.get(id)).backfill.planned_chunks !== planned) throw new Error('a chunk was planned after the pause')
  await backfills.resume(id, {}, 'bench')
  pausedMs += performance.now() - start
}
const state = await ending
const seconds = (performance.now() - began - pausedMs) / SECOND_MS
const memory = memoryOf(dev.pid)
const { backfill } = await backfills.get(id)
if (state !== 'SUCCEEDED' || backfill.succeeded_partitions !== PARTITIONS) throw new Error(JSON.stringify(backfill))

// What is on record, from outside: each partition was made by one task of one chunk.
const { sql } = localComponents(data)
const created = globSync(path.join(data, '**/ledger/**/*.json')).filter(
  (file) => statSync(file).size < 10_000 && readFileSync(file, 'utf8').includes('"BackfillCreated"'),
)
const eventBytes = Math.max(...created.map((file) => statSync(file).size))
const coverage = `select count(*)::int as tasks, count(distinct partition_key)::int as partitions,
  min(partition_key) as first, max(partition_key) as last from tasks join backfill_chunks using (run_id)
  where backfill_id = '${id}' and state = 'SUCCEEDED'`
const expected = { tasks: PARTITIONS, partitions: PARTITIONS, first: minute(0), last: minute(PARTITIONS - 1) }
let covered: unknown
// Tables are published behind the work.
for (let i = 0; i < 120; i++) {
  ;[covered] = await sql(coverage)
  if (JSON.stringify(covered) === JSON.stringify(expected)) break
  await sleep(SECOND_MS)
}
await dev.stop()
if (JSON.stringify(covered) !== JSON.stringify(expected)) throw new Error(`covered ${JSON.stringify(covered)}`)

// Beside it.
const RUNS = scaled(10_000)
const WIDTH = Math.max(1_000, scaled(10_000))
const servo = await Servo.open({
  assets: `import { asset, keys } from 'servo-flow'
export const one = asset('one', { run: () => undefined })
export const each = asset('each', { partitions: keys(Array.from({ length: ${WIDTH} }, (_, i) => 'p' + i)), run: () => undefined })
`,
})
const keys = Array.from({ length: WIDTH }, (_, i) => `p${i}`)
await inFlight(200, 24, () => servo.run('one'))
const runs = await timed(() => inFlight(RUNS, 24, () => servo.run('one')))
const fans: number[] = []
for (let i = 0; i < 3; i++) fans.push((await timed(() => servo.run('each', keys))).ms)
await servo.close()

const perSecond = PARTITIONS / seconds
const others = {
  'tasks of one run, as in fan-out': (WIDTH * SECOND_MS) / median(fans),
  'runs of one task, 24 in flight, as in runs': (RUNS * SECOND_MS) / runs.ms,
}
report.table('Partitions, or tasks', [
  ['', 'per second', 'backfill : it'],
  ['partitions of the backfill', number(perSecond), ''],
  ...Object.entries(others).map(([name, each]) => [name, number(each), ratio(perSecond / each)]),
])
report.table('A request, over HTTP', [
  ['', 'p50', 'p95', 'max'],
  ...Object.entries({ create: creating, 'look at it while it runs': looks, pause: pausing }).map(([name, times]) => {
    report.samples(name, 'ms', times)
    return [name, ...[median(times), quantile(times, 0.95), Math.max(...times)].map(milliseconds)]
  }),
])
report.note(
  `The segment with BackfillCreated has ${number(eventBytes)} bytes. The backfill took ${number(seconds)} s without its pauses.`,
)
report.note(
  `The server had ${megabytes(before.now)} before it, ${megabytes(memory.peak)} at the most, ${megabytes(memory.now)} at its end.`,
)
report.note(`Covered: ${JSON.stringify(covered)}.`)
report.finish()
await end()
