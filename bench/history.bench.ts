import { fsStore } from '../src/adapters/fs/object-store.ts'
import { systemClock } from '../src/adapters/system/clock.ts'
import { orchestration } from '../src/domain/index.ts'
import { runIdFromRunKey } from '../src/domain/runs/run-ids.ts'
import type { FileRef } from '../src/engine/files/file-ref.ts'
import { readHistory } from '../src/engine/history/entries.ts'
import { View } from '../src/engine/loop/view.ts'
import { encodeManifest } from '../src/engine/manifest/stored-manifests.ts'
import { knownRows } from '../src/server/leader/known-rows.ts'
import { rowsOfNewest } from '../src/server/sql-rows.ts'
import { RunReader } from '../src/server/workspace/run-reader.ts'
import { meteredStore } from './lib/metered-store.ts'
import { seeded } from './lib/random.ts'
import { quick, Report, scaled } from './lib/report.ts'
import { scratchFolder } from './lib/scratch.ts'
import { median, quantile } from './lib/stats.ts'
import { SECRET, scope } from './lib/stream.ts'
import { kilobytes, milliseconds, number, ratio } from './lib/table.ts'
import { Workload } from './lib/workload.ts'

/*
 * A finished run with its tasks and attempts, and the newest runs with filters, after more and more publishes; beside DuckDB on the same
 * files, asked as the server asked it before. Cold is with nothing of it in the memory of the process; the page cache is warm.
 */
const PUBLISHES = quick ? [10, 100, 300] : [10, 300, 3_000]
/** A million runs of one task after 3,000 publishes. */
const RUNS_PER_PUBLISH = Math.max(30, scaled(334))
const EVENTS_PER_RUN = 7
const ASSETS = 40
const FAIL_EVERY = 200
const QUESTIONS = quick ? 30 : 100
/** DuckDB opens every file for each question; a few tell enough. */
const PEER_QUESTIONS = quick ? 3 : 7

const report = new Report('history', `runs that have ended, after up to ${number(PUBLISHES.at(-1) ?? 0)} publishes`)
const folder = scratchFolder('history')
const work = await Workload.open(folder, {
  tasksPerRun: 1,
  liveRuns: 50,
  assets: ASSETS,
  failEvery: FAIL_EVERY,
  partitions: 365,
})
const random = seeded(11)

/** Bytes of history files that were written, merged ones among them, and those of what stayed. */
let written = 0

async function publishTo(publishes: number): Promise<void> {
  while (work.compactor.manifest.publish < publishes) {
    await work.compactor.fold.apply(work.stream.segments(RUNS_PER_PUBLISH * EVENTS_PER_RUN))
    work.store.take()
    await work.compactor.publish({ kind: 'base' })
    for (const file of work.store.take().written) if (file.path.includes('/history/')) written += file.bytes
    await work.collect()
  }
}

const heading = ['question', 'cold', 'warm', 'p95', 'read', 'DuckDB, median', 'DuckDB : warm']
const space = [
  [
    'publishes',
    'runs',
    'files if none were merged',
    'per 1,000 runs',
    'files',
    'per 1,000 runs',
    'kB per 1,000 runs',
    'written : kept',
    'manifest',
  ],
]
for (const publishes of PUBLISHES) {
  await publishTo(publishes)
  await questions(publishes)
  await room(publishes)
}
report.table('Room', space)
report.finish()

async function questions(publishes: number): Promise<void> {
  const runs = work.stream.finishedRuns
  const anyRun = (): string => {
    const key = work.stream.runKey(Math.floor(random() * runs))
    return runIdFromRunKey(scope.tenant_id, scope.workspace_id, key, SECRET)
  }
  const asset = (): string => `marts/orders_${String(Math.floor(random() * ASSETS)).padStart(3, '0')}`
  const newest = (rest: string): string[] => [`select * from runs ${rest} order by requested_at desc limit 50`]
  const kinds: Record<
    string,
    { ask(reader: RunReader, seed: string): Promise<unknown>; seed(): string; sql(seed: string): string[] }
  > = {
    'a run by its id': {
      seed: anyRun,
      ask: (reader, id) => reader.get(id),
      sql: (id) => ['runs', 'tasks', 'task_attempts'].map((table) => `select * from ${table} where run_id = '${id}'`),
    },
    'the newest 50': { seed: () => '', ask: (reader) => reader.page({ limit: 50 }), sql: () => newest('') },
    'the newest 50 that failed': {
      seed: () => 'FAILED',
      ask: (reader) => reader.page({ limit: 50, status: 'FAILED' }),
      sql: (state) => newest(`where state = '${state}'`),
    },
    'the newest 50 of an asset': {
      seed: asset,
      ask: (reader, key) => reader.page({ limit: 50, asset: key }),
      sql: (key) => newest(`where list_contains(assets, '${key}')`),
    },
    'the newest 50 that a sensor asked for, of which there are none': {
      seed: () => 'sensor',
      ask: (reader) => reader.page({ limit: 50, trigger: 'sensor' }),
      sql: (type) => newest(`where trigger_type = '${type}'`),
    },
  }
  const reading = [heading]
  for (const [kind, { seed, ask, sql }] of Object.entries(kinds)) {
    const cold: number[] = []
    const warm: number[] = []
    const peer: number[] = []
    const store = meteredStore(fsStore(folder))
    const opened = async (): Promise<RunReader> => {
      const view = await View.open({ store, scope, registry: orchestration, clock: systemClock })
      return new RunReader(
        knownRows(() => ({ state: view.state, coldRows: (table) => view.coldRows(table), history: view.history })),
      )
    }
    const reader = await opened()
    for (let i = 0; i < QUESTIONS; i++) warm.push(await timed(() => ask(reader, seed())))
    const settled = warm.slice(QUESTIONS / 3)
    let bytes = 0
    for (let i = 0; i < 5; i++) {
      const fresh = await opened()
      store.take()
      cold.push(await timed(() => ask(fresh, seed())))
      bytes = store.take().bytesRead
    }
    for (let i = 0; i < PEER_QUESTIONS; i++) {
      const asked = sql(seed())
      peer.push(await timed(() => Promise.all(asked.map((each) => rowsOfNewest(folder, store, scope, each)))))
    }
    reading.push([
      kind,
      milliseconds(median(cold)),
      milliseconds(median(settled)),
      milliseconds(quantile(settled, 0.95)),
      kilobytes(bytes),
      milliseconds(median(peer)),
      ratio(median(peer) / median(settled)),
    ])
    report.samples(`${kind} after ${publishes} publishes, warm`, 'ms', settled)
    report.samples(`${kind} after ${publishes} publishes, cold`, 'ms', cold)
    report.samples(`${kind} after ${publishes} publishes, DuckDB`, 'ms', peer)
  }
  report.table(`After ${number(publishes)} publishes and ${number(runs)} runs`, reading)
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now()
  await work()
  return performance.now() - start
}

async function room(publishes: number): Promise<void> {
  const runs = work.stream.finishedRuns
  const { manifest } = work.compactor
  const files: FileRef[] = []
  for await (const { tables } of readHistory(work.store, manifest)) files.push(...Object.values(tables))
  const tables = new Set(files.map((file) => file.path.split('/history/')[0])).size
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0)
  const per = (value: number): string => number((value * 1_000) / runs)
  space.push([
    number(publishes),
    number(runs),
    number(publishes * tables),
    per(publishes * tables),
    number(files.length),
    per(files.length),
    per(bytes / 1_000),
    ratio(written / bytes),
    kilobytes(encodeManifest(manifest).length),
  ])
}
