import { orchestration } from '../src/domain/index.ts'
import { EventFold } from '../src/engine/fold/event-fold.ts'
import { State } from '../src/engine/fold/state.ts'
import { decodeSegment, encodeSegment } from '../src/engine/ledger/segment.ts'
import { canonicalJson } from '../src/lib/json.ts'
import { ulidFloor } from '../src/lib/ulid.ts'
import type { Envelope } from '../src/model/envelope.ts'
import type { Read } from '../src/model/event.ts'
import { processorTime } from './lib/processor-time.ts'
import { quick, Report } from './lib/report.ts'
import { median, sum } from './lib/stats.ts'
import { Stream, scope } from './lib/stream.ts'
import { number, ratio } from './lib/table.ts'

/*
 * How fast a ledger becomes rows, beside the least that reading it could cost: JSON.parse of the same bytes, both in
 * processor time. Rounds take turns between all of them, so that a noisy neighbour disturbs them alike.
 */
const RUNS = quick ? 40 : 200
const ROUNDS = quick ? 6 : 15
/** The first rounds run in the interpreter. */
const WARM_UP = 3
const EVENTS_PER_RUN = 2 + 5 * 100

const report = new Report('fold', `${RUNS} runs of 100 tasks and 180 edges, segments of 100 events`)

/** How many runs go on at once: many spread the events over all of memory, few keep to the same rows. */
const mixes = { uniform: RUNS, hot: 4 }

const seconds = (work: () => void): number => {
  const start = process.cpuUsage()
  work()
  return processorTime(start) / 1_000
}

const NAME = ulidFloor(0)

interface Round {
  readonly parse: number
  readonly decode: number
  readonly fold: number
  readonly announceAndFold: number
}

function round(encoded: readonly Uint8Array[]): Round {
  const parse = seconds(() => {
    for (const bytes of encoded) JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8'))
  })
  let segments: (readonly Envelope[])[] = []
  const decode = seconds(() => {
    segments = encoded.map((bytes) => decodeSegment(bytes, `${NAME}.json`, scope))
  })
  const reads: Read[] = []
  const announceAndFold = seconds(() => {
    const { eventFold, provide } = emptyState()
    for (const events of segments) {
      const announced = eventFold.reads(events)
      provide(announced)
      reads.push(...announced)
      for (const event of events) eventFold.fold(event)
    }
  })
  const { eventFold, provide } = emptyState()
  provide(reads)
  const fold = seconds(() => {
    for (const events of segments) for (const event of events) eventFold.fold(event)
  })
  return { parse, decode, fold, announceAndFold }
}

function emptyState() {
  const state = new State(orchestration)
  // Nothing is stored, so every cold row that a fold may ask for is known not to be there.
  const provide = (reads: readonly Read[]): void => {
    for (const { table, key } of reads)
      state.coldTable(table).provide(
        key.filter((part) => part !== undefined),
        undefined,
      )
  }
  return { eventFold: new EventFold(orchestration, state), provide }
}

const steps: Record<string, (times: Round) => number> = {
  'decode: checksum, JSON, envelopes': ({ decode }) => decode,
  'fold: payloads checked, rows changed': ({ fold }) => fold,
  'announce cold reads, and fold': ({ announceAndFold }) => announceAndFold,
  'all: decode, announce, fold': ({ decode, announceAndFold }) => decode + announceAndFold,
}
const rows: string[][] = [['mix', 'step', 'events/s', 'µs/event', 'JSON.parse events/s', 'time : JSON.parse']]
for (const [mix, liveRuns] of Object.entries(mixes)) {
  const segments = new Stream({ tasksPerRun: 100, liveRuns, partitions: 365 }).segments(RUNS * EVENTS_PER_RUN)
  const encoded = segments.map(({ events }) =>
    encodeSegment(
      NAME,
      events.map((event) => canonicalJson(event)),
    ),
  )
  const events = sum(segments.map((segment) => segment.events.length))
  const rounds = Array.from({ length: WARM_UP + ROUNDS }, () => round(encoded)).slice(WARM_UP)
  const parse = rounds.map((times) => times.parse)
  report.samples(`${mix}: JSON.parse`, 's', parse)
  for (const [step, timeOf] of Object.entries(steps)) {
    const times = rounds.map(timeOf)
    report.samples(`${mix}: ${step}`, 's', times)
    const slower = median(rounds.map((each) => timeOf(each) / each.parse))
    rows.push([
      mix,
      step,
      number(events / median(times)),
      number((median(times) / events) * 1e6),
      number(events / median(parse)),
      ratio(slower),
    ])
  }
  const bytes = sum(encoded.map((segment) => segment.length))
  report.note(`${mix}: ${number(events)} events of ${number(bytes / events)} bytes, ${liveRuns} runs at once`)
}
report.table('Events per second of processor time', rows)
report.finish()
