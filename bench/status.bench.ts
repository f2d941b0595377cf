import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { cpSync } from 'node:fs'
import path from 'node:path'
import { quick, Report, scaled } from './lib/report.ts'
import { keyAt, madeAt, openReported, report as reported, reportedFolder } from './lib/reported.ts'
import { scratchFolder } from './lib/scratch.ts'
import { median } from './lib/stats.ts'
import type { Asked } from './lib/status-once.ts'
import { statusesOver } from './lib/statuses.ts'
import { kilobytes, milliseconds } from './lib/table.ts'

/*
 * The status of an asset with a million partitions, made minute by minute from another with a million, and its first stale
 * partitions: in a process that knows nothing, in one that was asked before, and after a change. Beside it DuckDB, asked the
 * same over the same files.
 */
const COUNT = scaled(1_000_000)
const ROUNDS = quick ? 3 : 9
const PAGE = 50

const report = new Report('status', `statuses of ${COUNT.toLocaleString('en')} partitions`)
const folder = await reportedFolder(COUNT)

const script = (name: string): string => path.join(import.meta.dirname, 'lib', name)

function run<T>(name: string, ...words: string[]): T {
  const { stdout, status } = spawnSync(process.execPath, [script(name), ...words], {
    stdio: ['ignore', 'pipe', 'inherit'],
    encoding: 'utf8',
  })
  if (status !== 0) throw new Error(`${name} failed`)
  return JSON.parse(stdout) as T
}

/** The same folder with some partitions of `up` made again: those below them are stale. */
async function changed(name: string, positions: Iterable<number>) {
  const copy = scratchFolder(name)
  cpSync(folder, copy, { recursive: true })
  const space = await openReported(copy)
  const at = madeAt(COUNT) + 1_000
  await space.write(
    [...positions].map((position) => reported('up', keyAt(COUNT, position), at)),
    at,
  )
  await space.compactor.publish({ kind: 'base' })
  return { copy, ...space }
}

const everyHundredth = Array.from({ length: Math.floor(COUNT / 100) }, (_, i) => i * 100 + 99)
const onePercent = await changed('one-percent', everyHundredth)
const onlyLast = await changed('only-last', [COUNT - 1])
const places = { 'none stale': folder, 'one of a hundred stale': onePercent.copy, 'only the last stale': onlyLast.copy }

const cold = new Map<string, Asked[]>()
for (let round = 0; round < ROUNDS; round++) {
  ask('summary, nothing above it', folder, 'summary', 'up')
  ask('summary, with what it is made from', folder, 'summary', 'down')
  for (const [name, place] of Object.entries(places)) ask(`first ${PAGE} stale, ${name}`, place, 'stale', 'down')
}
function ask(name: string, place: string, question: string, asset: string): void {
  cold.set(name, [...(cold.get(name) ?? []), run<Asked>('status-once.ts', place, question, asset)])
}
const of = (name: string, value: (one: Asked) => number): number => median((cold.get(name) ?? []).map(value))
report.table('In a new process, nothing read before', [
  ['', 'time', 'computing', 'requests', 'read'],
  ...[...cold.keys()].map((name) => [
    name,
    milliseconds(of(name, (one) => one.wallMs)),
    milliseconds(of(name, (one) => one.cpuMs)),
    String(of(name, (one) => one.requests)),
    kilobytes(of(name, (one) => one.bytesRead)),
  ]),
])
for (const [name, samples] of cold)
  report.samples(
    `${name}: cold`,
    'ms',
    samples.map(({ wallMs }) => wallMs),
  )

const warm: string[][] = []
async function measured(name: string, work: (round: number) => Promise<void>): Promise<void> {
  const times: number[] = []
  for (let round = 0; round < ROUNDS + 2; round++) {
    const start = performance.now()
    await work(round)
    // The first two compile.
    if (round >= 2) times.push(performance.now() - start)
  }
  warm.push([name, milliseconds(median(times)), milliseconds(Math.max(...times))])
  report.samples(name, 'ms', times)
}

const { compactor, write } = onlyLast
const statuses = statusesOver(compactor)
await measured('summary, asked before', async () => {
  const [summary] = await statuses.summaries('down')
  assert.equal(summary?.statuses.STALE, 1)
})
let changes = 0
await measured('summary, after one partition was made', async () => {
  await write([reported('down', keyAt(COUNT, changes), madeAt(COUNT) + 5_000 + changes++)], madeAt(COUNT) + 10_000)
  const [summary] = await statuses.summaries('down')
  assert.equal(summary?.partitions, COUNT)
})
const again = { none: statusesOver((await openReported(folder)).compactor), some: statusesOver(onePercent.compactor) }
for (const each of Object.values(again)) await each.summaries('down')
await measured(`first ${PAGE} stale, one of a hundred stale`, async () => {
  assert.equal((await again.some.stale({ select: 'down', limit: PAGE })).partitions.length, PAGE)
})
await measured(`first ${PAGE} stale, only the last stale`, async () => {
  assert.equal((await statuses.stale({ select: 'down', limit: PAGE })).partitions.length, 1)
})
await measured(`first ${PAGE} stale, none stale`, async () => {
  assert.equal((await again.none.stale({ select: 'down', limit: PAGE })).partitions.length, 0)
})
report.table('In a process that knows the assets', [['', 'median', 'longest'], ...warm])

const made = 'last_materialization_at is not null and (wiped_at is null or wiped_at < last_materialization_at)'
const questions = {
  'counting what is made': `select count(*) filter (where ${made}) from partition_status where asset_key = 'down'`,
  'the first that are stale': `select partition_key from partition_status d join partition_status u using (partition_key)
     where d.asset_key = 'down' and u.asset_key = 'up' and u.last_materialization_at > d.last_materialization_inputs_at
     order by partition_key limit ${PAGE}`,
}
report.table('DuckDB over the same files', [
  ['', 'new process', 'again'],
  ...Object.entries(questions).map(([name, sql]) => {
    const { coldMs, warmMs } = run<{ coldMs: number; warmMs: number }>('duckdb-once.ts', folder, sql)
    return [name, milliseconds(coldMs), milliseconds(warmMs)]
  }),
])
report.finish()
