import { DuckDBInstance } from '@duckdb/node-api'
import { fsStore } from '../src/adapters/fs/object-store.ts'
import { systemClock } from '../src/adapters/system/clock.ts'
import { orchestration } from '../src/domain/index.ts'
import { runKeyIndex } from '../src/domain/runs/run-key-index.table.ts'
import { View } from '../src/engine/loop/view.ts'
import { historyOf } from './lib/kept-history.ts'
import { meteredStore } from './lib/metered-store.ts'
import { seeded } from './lib/random.ts'
import { quick, Report } from './lib/report.ts'
import { mean, median, quantile } from './lib/stats.ts'
import { Stream, scope } from './lib/stream.ts'
import { kilobytes, milliseconds, number, ratio } from './lib/table.ts'

/*
 * Finding one run key among all that ever were, which every request for a run has to do, beside DuckDB asked the same
 * about the same files. Keys that are there and keys that are not take turns.
 */
const KEYS = quick ? 100_000 : 1_000_000
const LOOKUPS = quick ? 200 : 1_000
/** DuckDB opens every file for each query; a few tell enough. */
const PEER_LOOKUPS = quick ? 30 : 100

const report = new Report('query', `one run key among ${KEYS.toLocaleString('en')}, page cache warm`)
const folder = await historyOf(KEYS, 'keys')
const stream = new Stream({ tasksPerRun: 0, liveRuns: 1 })
const random = seeded(7)
const store = meteredStore(fsStore(folder))
const view = await View.open({ store, scope, registry: orchestration, clock: systemClock })
const files = view.manifest.sorted_files[runKeyIndex.name] ?? []

const kinds = {
  'a key that is there': () => stream.runKey(Math.floor(random() * KEYS)),
  'a key between those': () => `${stream.runKey(Math.floor(random() * KEYS))}x`,
}

const duck = await (await DuckDBInstance.create(':memory:')).connect()
const list = files.map((file) => `'${folder}/${file.path}'`).join(', ')
const statement = await duck.prepare(`select run_id from read_parquet([${list}]) where run_key = $1`)

interface Lookups {
  readonly wallMs: number[]
  readonly requests: number[]
  readonly bytes: number[]
  readonly peerMs: number[]
  found: number
}

const rows: string[][] = [['', 'first', 'median', 'p99', 'requests', 'read', 'found', 'DuckDB, median', 'DuckDB : Servo']]
for (const [kind, keyOf] of Object.entries(kinds)) {
  const lookups: Lookups = { wallMs: [], requests: [], bytes: [], peerMs: [], found: 0 }
  for (let i = 0; i < LOOKUPS; i++) {
    const key = keyOf()
    store.take()
    const start = performance.now()
    const row = await view.lookup(runKeyIndex, key)
    lookups.wallMs.push(performance.now() - start)
    const { requests, bytesRead } = store.take()
    lookups.requests.push(requests)
    lookups.bytes.push(bytesRead)
    if (row !== undefined) lookups.found += 1
    if (i % Math.floor(LOOKUPS / PEER_LOOKUPS) === 0) lookups.peerMs.push(await peer(key))
  }
  const settled = lookups.wallMs.slice(Math.floor(LOOKUPS / 10))
  rows.push([
    kind,
    milliseconds(lookups.wallMs[0] ?? Number.NaN),
    milliseconds(median(settled)),
    milliseconds(quantile(settled, 0.99)),
    number(mean(lookups.requests.slice(Math.floor(LOOKUPS / 10)))),
    kilobytes(mean(lookups.bytes.slice(Math.floor(LOOKUPS / 10)))),
    `${lookups.found} of ${LOOKUPS}`,
    milliseconds(median(lookups.peerMs)),
    ratio(median(lookups.peerMs) / median(settled)),
  ])
  report.samples(kind, 'ms', lookups.wallMs)
  report.samples(`${kind}, DuckDB`, 'ms', lookups.peerMs)
}

async function peer(key: string): Promise<number> {
  const start = performance.now()
  statement.bindVarchar(1, key)
  await (await statement.runAndReadAll()).getRows()
  return performance.now() - start
}

report.note(`${files.length} sorted files of ${files.map((file) => `${number(file.rows / 1_000)}k`).join(', ')} rows`)
report.table('Look-ups, requests and bytes on average once warm', rows)
report.finish()
