import fc from 'fast-check'
import { expect, test } from 'vitest'
import { newEvent } from '../../../model/event.ts'
import { SensorBench } from '../../../testing/sensor-bench.ts'
import { runKeyIndex } from '../../runs/run-key-index.table.ts'
import { deliveryOf } from '../messages.ts'
import { SensorCursorReset } from '../sensor-cursor-reset.event.ts'
import { sensorEvals } from '../sensor-evals.table.ts'
import { SensorMessageConflicted } from '../sensor-message-conflicted.event.ts'
import { sensorMessageConflicts } from '../sensor-message-conflicts.table.ts'
import { SensorMessageReplayed } from '../sensor-message-replayed.event.ts'
import { sensorMessages } from '../sensor-messages.table.ts'
import { EmptyPollNotes } from './empty-polls.ts'
import { type EvaluationResult, isEmptyPoll } from './evaluation-events.ts'

const MAX_TRIES = 3
type Outcome = 'ok' | 'error'

/** What senders, sources, people and the machine do. */
type Step =
  /** A message comes, perhaps to two servers at once; each of them may crash before its record is durable. */
  | { kind: 'delivery'; message: number; body: number; servers: { outcome: Outcome; crashes: boolean }[] }
  | { kind: 'poll'; servers: { outcome: Outcome; found: number; crashes: boolean }[] }
  | { kind: 'replay'; message: number }
  | { kind: 'reset' | 'restart' | 'record notes' }

const outcome = fc.constantFrom<Outcome>('ok', 'error')
const crashes = fc.integer({ min: 0, max: 5 }).map((n) => n === 0)
const message = fc.nat({ max: 2 })
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('delivery' as const),
      message,
      body: fc.integer({ min: 0, max: 5 }).map((n) => (n === 0 ? 1 : 0)),
      servers: fc.array(fc.record({ outcome, crashes }), { minLength: 1, maxLength: 2 }),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('poll' as const),
      servers: fc.array(fc.record({ outcome, found: fc.nat({ max: 2 }), crashes }), { minLength: 1, maxLength: 2 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('replay' as const), message }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constantFrom('reset' as const, 'restart' as const, 'record notes' as const) }) },
)

/** The rules of the manual, kept in a plain book: it knows nothing of versions, tries or rows. */
class Book {
  readonly accepted = new Map<string, { body: number }>()
  readonly failures = new Map<string, number>()
  readonly dead = new Set<string>()
  readonly conflicts = new Set<string>()
  runs = 0
  /** How many things the source has given so far. */
  position: string | null = null
  /** Changes whenever a poll that began before would count from the wrong place. */
  era = 0
}

test('[A20][A21][A23][A27][A28] messages in any order and number, with errors, crashes, restarts and replays, and polls that overlap: one accepted evaluation for each, and its runs', () => {
  const property = fc.property(fc.array(step, { minLength: 1, maxLength: 40, size: 'max' }), (steps) => {
    const sensor = new SensorBench()
    sensor.define({ config: { type: 'webhook', path: 'inbox', verify: 'none' }, max_tries: MAX_TRIES })
    const book = new Book()
    const notes = new EmptyPollNotes()
    let begun = 0
    for (const each of steps) {
      if (each.kind === 'restart') sensor.restart()
      else if (each.kind === 'delivery') deliver(sensor, book, each, () => `b${begun++}`)
      else if (each.kind === 'poll') polls(sensor, book, { ...each, notes }, () => `b${begun++}`)
      else if (each.kind === 'replay') {
        const id = `m${each.message}`
        const request = { sensor_id: sensor.id, message_id: id, request_id: `r${begun++}`, requested_by: 'ada' }
        sensor.write([newEvent(SensorMessageReplayed, request)])
        if (book.dead.delete(id)) book.failures.set(id, 0)
      } else if (each.kind === 'reset') {
        const request = { sensor_id: sensor.id, request_id: `r${begun++}`, changed_by: 'ada', cursor: null }
        sensor.write([...notes.take(`n${begun++}`), newEvent(SensorCursorReset, request)])
        book.position = null
        book.era += 1
      } else {
        const events = notes.take(`n${begun++}`)
        if (events.length > 0) sensor.write(events)
      }
    }
    const rest = notes.take(`n${begun++}`)
    if (rest.length > 0) sensor.write(rest)
    compare(sensor, book)
  })
  fc.assert(property, { numRuns: Number(process.env['SERVO_RUNS'] ?? 150) })
})

type Begin = () => string

function deliver(
  sensor: SensorBench,
  book: Book,
  { message, body, servers }: Extract<Step, { kind: 'delivery' }>,
  begin: Begin,
): void {
  const id = `m${message}`
  const body_hash = `body-${body}`
  // Servers that work side by side all decide by what was on record before the first of them wrote.
  const decision = deliveryOf(sensor.message(id), body_hash)
  const accepted = book.accepted.get(id)
  const expected = accepted ? (accepted.body === body ? 'accepted' : 'conflict') : book.dead.has(id) ? 'dead' : 'evaluate'
  expect(decision.kind).toBe(expected)
  if (decision.kind === 'conflict') {
    sensor.write([newEvent(SensorMessageConflicted, { sensor_id: sensor.id, message_id: id, body_hash, body_size: 3 })])
    book.conflicts.add(`${id} ${body_hash}`)
  }
  if (decision.kind !== 'evaluate') return
  let hasFailed = false
  for (const { outcome, crashes } of servers) {
    const begun = begin()
    // A key of its own for each evaluation, so that a run too many would show.
    const result: EvaluationResult =
      outcome === 'ok' ? { runs: [{ asset_selection: ['orders'], key: begun }] } : { error: 'it broke' }
    const source = { source: 'push', message_id: id, try: decision.try, body_hash, body_size: 3 } as const
    const events = sensor.eventsOf({ source, begun, result })
    if (crashes) continue
    sensor.write(events)
    if (book.accepted.has(id)) continue
    if (outcome === 'ok') {
      book.accepted.set(id, { body })
      book.dead.delete(id)
      book.runs += 1
    } else if (!hasFailed) {
      // Two servers that failed at the same time made one try.
      hasFailed = true
      const failures = (book.failures.get(id) ?? 0) + 1
      book.failures.set(id, failures)
      if (failures >= MAX_TRIES) book.dead.add(id)
    }
  }
}

interface Polling extends Extract<Step, { kind: 'poll' }> {
  readonly notes: EmptyPollNotes
}

function polls(sensor: SensorBench, book: Book, { servers, notes }: Polling, begin: Begin): void {
  const { state_version = 0, cursor = null } = sensor.state ?? {}
  const { era, position } = book
  for (const { outcome, found, crashes } of servers) {
    const after = found === 0 ? null : `${Number(position ?? 0) + found}`
    const began = begin()
    const runs = Array.from({ length: found }, (_, n) => ({ asset_selection: ['orders'], key: `${began}/${n}` }))
    const result: EvaluationResult = outcome === 'ok' ? { runs, cursor: after } : { error: 'it broke' }
    if (isEmptyPoll(result, cursor)) {
      notes.note(sensor.id, state_version, sensor.now)
      continue
    }
    const events = sensor.eventsOf({ source: { source: 'poll', state_version, cursor }, begun: began, result })
    if (crashes) continue
    sensor.write([...notes.take(`n${begin()}`, sensor.id), ...events])
    // The loser counts for nothing.
    if (book.era !== era) continue
    book.era += 1
    if (outcome === 'error') continue
    book.position = after
    book.runs += found
  }
}

function compare(sensor: SensorBench, book: Book): void {
  const evals = sensor.rows(sensorEvals)
  const perMessage = evals.filter((row) => row.accepted && row.trigger_source === 'push').map((row) => row.message_id)
  expect(perMessage.sort(), 'one accepted evaluation for each accepted message').toEqual([...book.accepted.keys()].sort())
  const versions = evals.filter((row) => row.accepted && row.trigger_source === 'poll').map((row) => row.state_version)
  expect(new Set(versions).size, 'one accepted poll for each version').toBe(versions.length)
  const dead = sensor.rows(sensorMessages).filter((row) => row.status === 'dead')
  expect(dead.map((row) => row.message_id).sort()).toEqual([...book.dead].sort())
  expect(sensor.state?.dead_letters ?? 0).toBe(book.dead.size)
  expect(
    sensor
      .rows(sensorMessageConflicts)
      .map((row) => `${row.message_id} ${row.body_hash}`)
      .sort(),
  ).toEqual([...book.conflicts].sort())
  expect(sensor.rows(runKeyIndex), 'the runs of what was accepted, and no others').toHaveLength(book.runs)
  expect(sensor.state?.cursor ?? null).toBe(book.position)
  expect(sensor.bench.parking(), 'nothing waits').toEqual([])
}
