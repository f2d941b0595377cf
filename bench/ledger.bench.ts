import { randomBytes } from 'node:crypto'
import { rmSync } from 'node:fs'
import { systemClock } from '../src/adapters/system/clock.ts'
import { TaskFinished } from '../src/domain/tasks/task-finished.event.ts'
import { Ledger } from '../src/engine/ledger/ledger.ts'
import { canonicalJson } from '../src/lib/json.ts'
import { ulidSource } from '../src/lib/ulid.ts'
import type { NewEvent } from '../src/model/event.ts'
import { localComponents } from '../src/server/components.ts'
import { rawDisk } from './lib/raw-disk.ts'
import { quick, Report } from './lib/report.ts'
import { scratchFolder } from './lib/scratch.ts'
import { median, quantile } from './lib/stats.ts'
import { scope } from './lib/stream.ts'
import { kilobytes, milliseconds, number, ratio } from './lib/table.ts'

/*
 * Durable appends on a folder, beside what the same disk does without us: files of the same size made one after the
 * other with every sync a durable create needs, and a log that one open file is appended to.
 */
const WRITERS = [1, 24, 500]
const ROUNDS = quick ? 6 : 40
/** Short, so that both sides of a ratio meet the same weather: a shared disk changes from one second to the next. */
const SAMPLE_MS = 200

const report = new Report(
  'ledger',
  `appends of one event, durable when acknowledged; ${ROUNDS} rounds of ${SAMPLE_MS} ms, taking turns`,
)

const finished: NewEvent = {
  definition: TaskFinished,
  payload: {
    run_id: 'run_abcdefghijklmnopqrstuvwxyz',
    task_key: 'marts/orders_042@2025-01-15',
    attempt: 1,
    attempt_id: 'a_abcdefghijklmnopqrstuvwxyz',
    outcome: 'SUCCEEDED',
    worker_id: 'worker-7',
    completed_at: '2025-01-15T10:00:00.000Z',
    retryable: true,
    materialization_id: 'mat:a_abcdefghij',
  },
}

interface Sample {
  readonly eventsPerSecond: number
  readonly segmentsPerSecond: number
  readonly eventsPerSegment: number
  readonly latenciesMs: readonly number[]
}

async function append(writers: number): Promise<Sample> {
  const folder = scratchFolder('ledger')
  const { store } = localComponents(folder, scope)
  let segments = 0
  const ledger = new Ledger({
    store,
    scope,
    clock: systemClock,
    ulid: ulidSource(Date.now, (length) => randomBytes(length)),
    source: 'servo/bench',
    onDurable: () => {
      segments += 1
    },
  })
  // Folders are made once in the life of a ledger; the first append pays for that and is not counted.
  await ledger.append([finished])
  segments = 0
  const latenciesMs: number[] = []
  const start = performance.now()
  const until = start + SAMPLE_MS
  const writer = async (): Promise<void> => {
    for (let asked = performance.now(); asked < until; ) {
      await ledger.append([finished])
      const now = performance.now()
      latenciesMs.push(now - asked)
      asked = now
    }
  }
  await Promise.all(Array.from({ length: writers }, writer))
  const elapsed = (performance.now() - start) / 1_000
  rmSync(folder, { recursive: true })
  const events = latenciesMs.length
  return {
    eventsPerSecond: events / elapsed,
    segmentsPerSecond: segments / elapsed,
    eventsPerSegment: events / segments,
    latenciesMs,
  }
}

type RawWrite = 'createSync' | 'create' | 'appendSync'

async function raw(kind: RawWrite, bytes: Uint8Array): Promise<number> {
  const folder = scratchFolder('raw')
  const disk = rawDisk(folder)
  let writes = 0
  const start = performance.now()
  for (const until = start + SAMPLE_MS; performance.now() < until; writes++) await disk[kind](bytes)
  const elapsed = (performance.now() - start) / 1_000
  disk.close()
  rmSync(folder, { recursive: true })
  return writes / elapsed
}

const { events } = await new Ledger({
  store: localComponents(scratchFolder('size'), scope).store,
  scope,
  clock: systemClock,
  ulid: ulidSource(Date.now, (length) => randomBytes(length)),
  source: 'servo/bench',
}).append([finished])
const eventBytes = canonicalJson(events[0]).length
const bytesOf = (eventCount: number): Uint8Array => Buffer.alloc(Math.round(eventCount * (eventBytes + 1)) + 90, '.')

const servo = new Map<number, Sample[]>(WRITERS.map((writers) => [writers, []]))
const rawFiles: Record<RawWrite, Map<number, number[]>> = { createSync: new Map(), create: new Map(), appendSync: new Map() }
for (let round = 0; round < ROUNDS; round++) {
  for (const writers of WRITERS) {
    const sample = await append(writers)
    servo.get(writers)?.push(sample)
    for (const kind of Object.keys(rawFiles) as RawWrite[]) {
      const rates = rawFiles[kind].get(writers) ?? []
      rates.push(await raw(kind, bytesOf(sample.eventsPerSegment)))
      rawFiles[kind].set(writers, rates)
    }
  }
}

const rawOf = (kind: RawWrite, writers: number): number => median(rawFiles[kind].get(writers) ?? [])
const pairwise = (kind: RawWrite, writers: number, of: (sample: Sample) => number): number =>
  median((servo.get(writers) ?? []).map((sample, round) => of(sample) / (rawFiles[kind].get(writers)?.[round] ?? Number.NaN)))

const appends: string[][] = [['writers', 'events/s', 'p50', 'p99', 'events/segment', 'segments/s', 'segment size']]
const limits: string[][] = [
  [
    'writers',
    'segments/s',
    'raw files/s, blocking',
    'ratio',
    'raw files/s, thread pool',
    'ratio',
    'raw log appends/s',
    'ratio',
  ],
]
const gains: string[][] = [['writers', 'events/s', 'raw files/s, one event each', 'group commit gives']]
for (const writers of WRITERS) {
  const samples = servo.get(writers) ?? []
  const of = (value: (sample: Sample) => number): number => median(samples.map(value))
  const latency = (share: number): number => of((sample) => quantile(sample.latenciesMs, share))
  const perSegment = of((sample) => sample.eventsPerSegment)
  appends.push([
    String(writers),
    number(of((sample) => sample.eventsPerSecond)),
    milliseconds(latency(0.5)),
    milliseconds(latency(0.99)),
    number(perSegment),
    number(of((sample) => sample.segmentsPerSecond)),
    kilobytes(bytesOf(perSegment).length),
  ])
  limits.push([
    String(writers),
    number(of((sample) => sample.segmentsPerSecond)),
    ...(['createSync', 'create', 'appendSync'] as const).flatMap((kind) => [
      number(rawOf(kind, writers)),
      ratio(pairwise(kind, writers, (sample) => sample.segmentsPerSecond)),
    ]),
  ])
  gains.push([
    String(writers),
    number(of((sample) => sample.eventsPerSecond)),
    number(rawOf('createSync', 1)),
    ratio(median(samples.map((sample, round) => sample.eventsPerSecond / (rawFiles.createSync.get(1)?.[round] ?? Number.NaN)))),
  ])
  report.samples(
    `${writers} writers: events per second`,
    '1/s',
    samples.map((sample) => sample.eventsPerSecond),
  )
  report.samples(
    `${writers} writers: p99`,
    'ms',
    samples.map((sample) => quantile(sample.latenciesMs, 0.99)),
  )
  for (const kind of Object.keys(rawFiles) as RawWrite[])
    report.samples(`${writers} writers: raw ${kind}`, '1/s', rawFiles[kind].get(writers) ?? [])
}
report.note(`events of ${eventBytes} bytes`)
report.table('Appends', appends)
report.table('Segments beside raw writes of the same size, one after the other (1.0 is the limit)', limits)
report.table('What group commit gives over a file for each event', gains)
report.finish()
