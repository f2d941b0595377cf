import assert from 'node:assert/strict'
import { constants, zstdCompressSync } from 'node:zlib'
import { memoryStore } from '../src/adapters/memory/object-store.ts'
import { orchestration } from '../src/domain/index.ts'
import { verify } from '../src/engine/check/verify.ts'
import { encodeSegment } from '../src/engine/ledger/segment.ts'
import { Packer } from '../src/engine/pack/packer.ts'
import { Paths } from '../src/engine/paths.ts'
import { Compactor } from '../src/engine/publish/compactor.ts'
import { canonicalJson } from '../src/lib/json.ts'
import { DAY_MS } from '../src/lib/time.ts'
import { processorTime } from './lib/processor-time.ts'
import { quick, Report, scaled } from './lib/report.ts'
import { Stream, scope } from './lib/stream.ts'
import { kilobytes, milliseconds, number, ratio } from './lib/table.ts'

/*
 * What the ledger of 1,000 runs takes, before its days are packed and after, with more and more runs; beside the same bytes compressed as
 * one. In memory: what counts is files and bytes, and what packing computes. Runs have one task, and segments as many events as those of a
 * server under load have.
 */
const RUNS = quick ? [2_000, 4_000] : [10_000, 30_000, scaled(100_000)]
const RUNS_PER_DAY = quick ? 1_000 : 10_000
const EVENTS_PER_RUN = 7
const EVENTS_PER_SEGMENT = 27
const BATCH_EVENTS = 7_000

const report = new Report('packing', `the ledger of up to ${number(RUNS.at(-1) ?? 0)} runs, ${number(RUNS_PER_DAY)} a day`)
const paths = new Paths(scope)
const store = memoryStore()
const stream = new Stream({
  tasksPerRun: 1,
  liveRuns: 50,
  assets: 40,
  partitions: 365,
  eventsPerSegment: EVENTS_PER_SEGMENT,
  msPerEvent: DAY_MS / (RUNS_PER_DAY * EVENTS_PER_RUN),
})
const now = (): number => Math.floor(stream.now)
const clock = { now, monotonic: now, sleep: () => Promise.resolve() }
const compactor = await Compactor.open({ store, scope, registry: orchestration, clock, name: 'bench' })
const packer = new Packer({ store, scope, registry: orchestration, clock, compactor })

let writer: string | undefined
const before = { files: 0, bytes: 0, asOne: 0 }
let computedMs = 0
let longestMs = 0

/** As a server writes, folds and publishes. */
async function write(events: number): Promise<void> {
  const texts: Uint8Array[] = []
  const segments = stream.segments(events).map((segment) => {
    writer ??= segment.ulid
    return { ...segment, sequence: { writer, number: ++before.files } }
  })
  for (const { ulid, events: batch, sequence } of segments) {
    const bytes = encodeSegment(
      ulid,
      batch.map((event) => canonicalJson(event)),
      sequence,
    )
    await store.create(paths.segment(ulid), bytes)
    before.bytes += bytes.length
    texts.push(bytes)
  }
  before.asOne += zstdCompressSync(Buffer.concat(texts), { params: { [constants.ZSTD_c_compressionLevel]: 9 } }).length
  await compactor.fold.apply(segments)
  await compactor.publish({ kind: 'base' })
}

async function pack(): Promise<void> {
  for (let goesOn = true; goesOn; ) {
    const [cpu, start] = [process.cpuUsage(), performance.now()]
    goesOn = await packer.step()
    computedMs += processorTime(cpu)
    longestMs = Math.max(longestMs, performance.now() - start)
  }
}

async function stored(prefix: string): Promise<{ files: number; bytes: number }> {
  const found = { files: 0, bytes: 0 }
  for await (const { path } of store.list(prefix)) {
    found.files += 1
    found.bytes += (await store.size(path)) ?? 0
  }
  return found
}

const rows = [['runs', 'files', 'kB', 'packed: files', 'kB', ': before', ': as one', 'computed', 'longest step', 'manifest']]
for (const runs of RUNS) {
  while (stream.finishedRuns < runs) {
    await write(BATCH_EVENTS)
    await pack()
  }
  // Days pass, until the last one is packed too.
  for (let i = 0; i < 3; i++) {
    stream.now += 2 * DAY_MS
    await write(EVENTS_PER_SEGMENT)
  }
  await pack()
  const after = await stored(paths.archives)
  const left = await stored(paths.ledger)
  assert.ok(left.files <= 2, 'all days but the last are packed')
  const per = 1_000 / stream.finishedRuns
  rows.push([
    number(stream.finishedRuns),
    (before.files * per).toFixed(0),
    kilobytes(before.bytes * per),
    (after.files * per).toFixed(2),
    kilobytes(after.bytes * per),
    ratio(after.bytes / before.bytes),
    ratio(after.bytes / before.asOne),
    milliseconds(computedMs * per),
    milliseconds(longestMs),
    kilobytes((await store.size(paths.manifest(compactor.manifest.number))) ?? 0),
  ])
}
report.table('The ledger of 1,000 runs', rows)
const { ok, segments } = await verify({ store, scope, registry: orchestration, scratch: memoryStore(), quick: true })
assert.ok(ok && segments === before.files, 'everything is there')
report.finish()
