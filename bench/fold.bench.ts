import { orchestration } from '../src/domain/index.ts'
import { Folder } from '../src/engine/fold.ts'
import { decodeSegment, encodeSegment, type Segment } from '../src/engine/segment.ts'
import { State } from '../src/engine/state.ts'
import { canonicalJson } from '../src/lib/json.ts'
import type { Envelope } from '../src/model/envelope.ts'
import { processorTime } from './lib/processor-time.ts'
import { quick, Report } from './lib/report.ts'
import { median, sum } from './lib/stats.ts'
import { Stream, scope } from './lib/stream.ts'
import { number, ratio } from './lib/table.ts'

/*
 * How fast a ledger becomes rows, beside the least that reading it could cost: JSON.parse of the same bytes,
 * both in processor time. Rounds alternate between the two, so that a noisy neighbour disturbs both.
 */
const RUNS = quick ? 40 : 200
const ROUNDS = quick ? 5 : 15
/** The first rounds run in the interpreter. */
const WARM_UP = 2
const EVENTS_PER_RUN = 2 + 5 * 100

const report = new Report('fold', `${RUNS} runs of 100 tasks and 180 edges, segments of 100 events`)

/** How many runs go on at once: many spread the events over all of memory, few keep to the same rows. */
const mixes = { uniform: RUNS, hot: 4 }

interface Round {
  parse: number
  decode: number
  announce: number
  fold: number
}

const seconds = (work: () => void): number => {
  const start = process.cpuUsage()
  work()
  return processorTime(start) / 1_000
}

function round(encoded: readonly Uint8Array[]): Round {
  const times: Round = { parse: 0, decode: 0, announce: 0, fold: 0 }
  times.parse = seconds(() => {
    for (const bytes of encoded) JSON.parse(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8'))
  })
  const state = new State(orchestration)
  const folder = new Folder(orchestration, state)
  // Segment by segment, as the compactor does: what is decoded is folded while it is still in the processor's caches.
  for (const bytes of encoded) {
    let events: Envelope[] = []
    times.decode += seconds(() => {
      events = decodeSegment(bytes, 'segment', scope)
    })
    times.announce += seconds(() => {
      // Nothing is stored, so every cold row that a fold may ask for is known not to be there.
      for (const { table, key } of folder.reads(events)) state.coldTable(table).provide(key.filter((part) => part !== undefined), undefined)
    })
    times.fold += seconds(() => {
      for (const event of events) folder.fold(event)
    })
  }
  return times
}

const heading = ['mix', 'step', 'events/s', 'µs/event', 'JSON.parse alone', 'of JSON.parse']
const rows: string[][] = [heading]
for (const [mix, liveRuns] of Object.entries(mixes)) {
  const segments: Segment[] = new Stream({ tasksPerRun: 100, liveRuns, partitions: 365 }).segments(RUNS * EVENTS_PER_RUN)
  const encoded = segments.map(({ events }) => encodeSegment(events.map((event) => canonicalJson(event))))
  const events = sum(segments.map((segment) => segment.events.length))
  const bytes = sum(encoded.map((segment) => segment.length))
  const rounds = Array.from({ length: WARM_UP + ROUNDS }, () => round(encoded)).slice(WARM_UP)

  const steps: Record<string, (times: Round) => number> = {
    'decode (checksum, JSON, envelopes)': (times) => times.decode,
    'announce (which cold rows)': (times) => times.announce,
    fold: (times) => times.fold,
    'all three': (times) => times.decode + times.announce + times.fold,
  }
  const parse = median(rounds.map((times) => times.parse))
  report.samples(`${mix}: JSON.parse`, 's', rounds.map((times) => times.parse))
  for (const [step, timeOf] of Object.entries(steps)) {
    const times = rounds.map(timeOf)
    report.samples(`${mix}: ${step}`, 's', times)
    const slower = median(rounds.map((times) => timeOf(times) / times.parse))
    rows.push([mix, step, number(events / median(times)), number((median(times) / events) * 1e6), number(events / parse), ratio(slower)])
  }
  report.note(`${mix}: ${number(events)} events of ${number(bytes / events)} bytes, ${liveRuns} runs at once; JSON.parse alone ${number((parse / events) * 1e6)} µs/event`)
}
report.table('Events per second on one core', rows)
report.finish()
