import { orchestration } from '../src/domain/index.ts'
import { editSensorState } from '../src/domain/sensors/edit-sensor-state.ts'
import { sensorHappenings } from '../src/domain/sensors/happenings/sensor-happenings.table.ts'
import { SensorDefined } from '../src/domain/sensors/sensor-defined.event.ts'
import { EventFold } from '../src/engine/fold/event-fold.ts'
import { State } from '../src/engine/fold/state.ts'
import type { Envelope } from '../src/model/envelope.ts'
import { SimulatedWriter } from '../src/testing/histories/writers.ts'
import { processorTime } from './lib/processor-time.ts'
import { quick, Report } from './lib/report.ts'
import { median } from './lib/stats.ts'
import { Stream } from './lib/stream.ts'
import { number, ratio } from './lib/table.ts'

/*
 * What sensors that watch assets cost the fold, beside the same events without any sensor. Rounds take turns, so that a noisy
 * neighbour disturbs them alike.
 */
const RUNS = quick ? 20 : 100
const ROUNDS = quick ? 6 : 15
/** The first rounds run in the interpreter. */
const WARM_UP = 3
const TASKS_PER_RUN = 100
const SENSORS = 100

const mixes: Record<string, readonly string[]> = {
  'no sensor': [],
  '100 sensors that watch other assets': Array.from({ length: SENSORS }, (_, n) => `raw/asset_${n}`),
  '100 sensors, each task is heard of by one': Array.from(
    { length: SENSORS },
    (_, n) => `marts/orders_${String(n).padStart(3, '0')}`,
  ),
  '10 sensors that hear of every task': Array.from({ length: 10 }, () => 'marts/*'),
  'a sensor with 10,000 waiting, whose oldest are dropped': ['marts/*'],
}

const report = new Report('happenings', `${RUNS} runs of ${TASKS_PER_RUN} tasks`)
const writer = new SimulatedWriter(1, 0, () => Date.UTC(2025, 0, 15, 9))

const sensors = (watched: readonly string[]): Envelope[] =>
  watched.map((pattern, n) => {
    const ids = { sensor_id: `sensor-${n}`, sensor_name: `sensor ${n}`, definition_hash: 'h', request_id: `r${n}` }
    return writer.write(SensorDefined, { ...ids, config: { type: 'asset', assets: [pattern] } })
  })

/** Runs that a person asked for: what schedules ask for would wait for its tick. */
function events(): Envelope[] {
  const stream = new Stream({ tasksPerRun: TASKS_PER_RUN, liveRuns: 4, partitions: 365 })
  const all = stream.segments(RUNS * (2 + 5 * TASKS_PER_RUN)).flatMap((segment) => segment.events)
  return all.map((event) => {
    if (event.event_type !== 'RunRequested') return event
    const run_key = `user:${String(event.payload['run_key'])}`
    const trigger_source_ref = { type: 'manual', user_id: 'ada', request_id: run_key }
    return { ...event, idempotency_key: run_key, payload: { ...event.payload, run_key, trigger_source_ref } }
  })
}

function fold(state: State, batch: readonly Envelope[]): void {
  const eventFold = new EventFold(orchestration, state)
  for (const { table, key } of eventFold.reads([...batch])) {
    // Nothing is stored, so every cold row that a fold may ask for is known not to be there.
    state.coldTable(table).provide(
      key.filter((part) => part !== undefined),
      undefined,
    )
  }
  for (const event of batch) eventFold.fold(event)
}

const told = events()
const times = new Map(Object.keys(mixes).map((mix) => [mix, [] as number[]]))
const waiting = new Map<string, number>()
for (let round = 0; round < WARM_UP + ROUNDS; round++) {
  // Each mix is the first in turn, because garbage of the one before is charged to the next.
  const all = Object.entries(mixes)
  for (const [mix, watched] of [...all.slice(round % all.length), ...all.slice(0, round % all.length)]) {
    const state = new State(orchestration)
    fold(state, sensors(watched))
    if (mix.includes('10,000')) fill(state)
    const start = process.cpuUsage()
    fold(state, told)
    if (round >= WARM_UP) times.get(mix)?.push(processorTime(start))
    waiting.set(mix, state.hotTable(sensorHappenings).size)
  }
}

/** The sensor was paused long ago. */
function fill(state: State): void {
  const happening = { type: 'materialized', asset_key: 'marts/x', partition_key: null, run_id: null } as const
  for (let n = 0; n < 10_000; n++) {
    const key = { sensor_id: 'sensor-0', message_id: `materialized:report:${n}` }
    state.hot(sensorHappenings).insert({ ...key, happening, happened_at: n, chain: null, dead: false, row_version: '0' })
  }
  const row = editSensorState(state, 'sensor-0', '0')
  row.happenings_waiting = 10_000
}

const without = median(times.get('no sensor') ?? [])
const rows: string[][] = [['sensors', 'µs/event', 'µs more per finished task', 'time : no sensor', 'waiting at the end']]
for (const [mix, samples] of times) {
  report.samples(mix, 'ms', samples)
  const each = median(samples)
  rows.push([
    mix,
    number((each * 1_000) / told.length),
    number(((each - without) * 1_000) / (RUNS * TASKS_PER_RUN)),
    ratio(each / without),
    number(waiting.get(mix) ?? 0),
  ])
}
report.table('Processor time of the fold', rows)
report.finish()
