import { describe, expect, test } from 'vitest'
import { memoryStore } from '../../src/adapters/memory/object-store.ts'
import { AssetsDefined } from '../../src/domain/assets/assets-defined.event.ts'
import { orchestration } from '../../src/domain/index.ts'
import { RunRequested } from '../../src/domain/runs/run-requested.event.ts'
import { TaskFinished } from '../../src/domain/tasks/task-finished.event.ts'
import { TaskStarted } from '../../src/domain/tasks/task-started.event.ts'
import { Ledger } from '../../src/engine/ledger/ledger.ts'
import { Loop } from '../../src/engine/loop/loop.ts'
import { View } from '../../src/engine/loop/view.ts'
import { Paths } from '../../src/engine/paths.ts'
import { Compactor } from '../../src/engine/publish/compactor.ts'
import { isServoError } from '../../src/lib/error.ts'
import { ulidSource } from '../../src/lib/ulid.ts'
import type { NewEvent } from '../../src/model/event.ts'
import { countingStore } from '../../src/testing/counting-store.ts'
import { reportFact, runFacts } from '../../src/testing/facts.ts'
import { VirtualClock } from '../../src/testing/virtual-clock.ts'
import { Gate, interceptedStore } from './intercepted-store.ts'
import { scope, seededBytes, Workspace } from './workspace.ts'

const [request, plan] = runFacts('good').batches[0]!
const [finish] = runFacts('good').batches.at(-1)!
const [enqueued, start] = runFacts('good').batches[2]!

/** The event with some of its payload replaced: whatever a caller without a compiler may send. */
const changed = (event: NewEvent | undefined, change: Record<string, unknown>): NewEvent => ({
  definition: event!.definition,
  payload: { ...(event!.payload as object), ...change },
})
const without = (event: NewEvent | undefined, name: string): NewEvent => {
  const { [name]: _, ...payload } = event!.payload as Record<string, unknown>
  return { definition: event!.definition, payload }
}
/** An object that has `__proto__` as a member of its own, as `JSON.parse` makes it. */
const withProto = (value: unknown): unknown => JSON.parse(`{"a":"b","__proto__":${JSON.stringify(value)}}`)
const nested = (depth: number): unknown => JSON.parse(`${'['.repeat(depth)}${']'.repeat(depth)}`)
const cyclic: Record<string, unknown> = {}
cyclic['self'] = cyclic
class Money {
  readonly amount = 5
}

const long = 'x'.repeat(1_100)

type Case = [what: string, event: NewEvent, code: string, field?: string]
const refused: Case[] = [
  ['no payload', { definition: RunRequested, payload: undefined }, 'bad_payload', 'payload'],
  ['null for a payload', { definition: RunRequested, payload: null }, 'bad_payload', 'payload'],
  ['a list for a payload', { definition: RunRequested, payload: [] }, 'bad_payload', 'payload'],
  ['text for a payload', { definition: TaskStarted, payload: '{}' }, 'bad_payload', 'payload'],
  ['a field left out', without(request, 'run_key'), 'bad_payload', 'payload.run_key'],
  ['a field of the wrong type', changed(start, { attempt: '1' }), 'bad_payload', 'payload.attempt'],
  ['a fraction for a whole number', changed(start, { attempt: 1.5 }), 'bad_payload', 'payload.attempt'],
  ['NaN', changed(start, { attempt: Number.NaN }), 'bad_payload', 'payload.attempt'],
  ['Infinity', changed(request, { priority: Number.POSITIVE_INFINITY }), 'bad_payload', 'payload.priority'],
  ['a bigint', changed(start, { attempt: 1n }), 'bad_payload', 'payload.attempt'],
  ['a word that is not one of the choices', changed(finish, { outcome: 'DONE' }), 'bad_payload', 'payload.outcome'],
  ['an invalid time', changed(start, { started_at: 'yesterday' }), 'bad_payload', 'payload.started_at'],
  ['an empty id', changed(start, { worker_id: '' }), 'bad_payload', 'payload.worker_id'],
  ['a misspelt field', changed(request, { partition_selction: ['a'] }), 'bad_payload', 'payload.partition_selction'],
  [
    'an unknown field deep inside',
    changed(request, { trigger_source_ref: { type: 'manual', user_id: 'ada', request_id: 'r', admin: true } }),
    'bad_payload',
    'payload.trigger_source_ref.admin',
  ],
  ['another namespace of run keys', changed(request, { run_key: 'sched:mine' }), 'bad_payload', 'payload.run_key'],
  ['a run id that is a path', changed(request, { run_id: '../../etc/passwd' }), 'bad_payload', 'payload.run_id'],
  ['a NUL in an id', changed(start, { task_key: 'a\0b' }), 'bad_payload', 'payload.task_key'],
  ['a line end in an id', changed(start, { worker_id: 'a\nb' }), 'bad_payload', 'payload.worker_id'],
  ['a NUL in a run key', changed(request, { run_key: 'manual:a\0b' }), 'bad_payload', 'payload.run_key'],
  ['an id of over a kilobyte', changed(start, { worker_id: long }), 'bad_payload', 'payload.worker_id'],
  ['a run key of over a kilobyte', changed(request, { run_key: `manual:${long}` }), 'bad_payload', 'payload.run_key'],
  ['a label name of over a kilobyte', changed(request, { labels: { [long]: 'x' } }), 'bad_payload', `payload.labels.${long}`],
  ['half a surrogate pair in an id', changed(start, { worker_id: 'a\ud800' }), 'not_json'],
  ['half a surrogate pair in a label', changed(request, { labels: { team: '\udc00' } }), 'not_json'],
  ['half a surrogate pair deep inside', changed(finish, { metrics: { a: [{ '\ud800': 1 }] } }), 'not_json'],
  ['__proto__ in labels', changed(request, { labels: withProto('x') }), 'bad_payload', 'payload.labels.__proto__'],
  ['__proto__ in metrics', changed(finish, { metrics: withProto({}) }), 'json_proto_key'],
  ['__proto__ deep in metrics', changed(finish, { metrics: [{ deep: withProto(1) }] }), 'json_proto_key'],
  ['__proto__ in the payload', { definition: TaskStarted, payload: withProto({}) }, 'bad_payload', 'payload.run_id'],
  [
    '__proto__ beside a good payload',
    { definition: start!.definition, payload: JSON.parse(`${JSON.stringify(start!.payload).slice(0, -1)},"__proto__":{}}`) },
    'bad_payload',
    'payload.__proto__',
  ],
  ['a value nested 100 deep', changed(finish, { metrics: nested(100) }), 'json_too_deep'],
  ['a value nested 100,000 deep', changed(finish, { output: nested(100_000) }), 'json_too_deep'],
  ['a value that holds itself', changed(finish, { metrics: cyclic }), 'json_too_deep'],
  ['NaN deep inside', changed(finish, { metrics: { a: [Number.NaN] } }), 'not_json'],
  ['Infinity deep inside', changed(finish, { metrics: { a: Number.NEGATIVE_INFINITY } }), 'not_json'],
  ['a bigint deep inside', changed(finish, { metrics: { rows: 5n } }), 'not_json'],
  ['a Date', changed(finish, { metrics: { at: new Date(0) } }), 'not_json'],
  ['a Map', changed(finish, { metrics: new Map() }), 'not_json'],
  ['an instance of a class', changed(finish, { output: new Money() }), 'not_json'],
  ['a function', changed(finish, { metrics: { f: () => 1 } }), 'not_json'],
  ['a hole in a list', changed(finish, { metrics: [1, undefined, 2] }), 'not_json'],
  ['bytes', changed(finish, { output: new Uint8Array(3) }), 'not_json'],
  ['an event of over a megabyte', changed(finish, { metrics: { text: 'x'.repeat(1 << 20) } }), 'too_large'],
  ['an actor that breaks a line', { ...request!, actor: 'ada\nroot' }, 'bad_envelope', 'actor'],
  ['a correlation id of over a kilobyte', { ...request!, correlation_id: long }, 'bad_envelope', 'correlation_id'],
  ['an empty trace', { ...request!, traceparent: '' }, 'bad_envelope', 'traceparent'],
]

describe('[L6] an append is refused, and nothing of it is written, for', () => {
  async function refusal(events: readonly NewEvent[]): Promise<{ error: unknown }> {
    const counting = countingStore(memoryStore())
    const workspace = new Workspace(counting)
    const ledger = workspace.ledger()
    const error = await ledger.append(events).catch((error: unknown) => error)
    expect(isServoError(error), String(error)).toBe(true)
    expect(counting.count()).toBe(0)
    // Nothing of the bad one is left over, and the ledger is as good as before.
    const { events: written } = await ledger.append([reportFact('after')])
    expect(counting.count('create')).toBe(1)
    expect([...(await workspace.eventCounts()).keys()]).toEqual([written[0]!.event_id])
    return { error }
  }

  test.each(refused)('%s', async (_, event, code, field) => {
    const { error } = await refusal([event])
    expect(error).toMatchObject({ kind: 'invalid', code, ...(field !== undefined && { facts: { field } }) })
    const { hint, facts } = error as { hint?: string; facts: Record<string, unknown> }
    expect(hint ?? facts['field']).toMatch(/\w/)
  })

  test('one bad event among good ones: a batch is all or nothing', async () => {
    const { error } = await refusal([request!, plan!, changed(start, { worker_id: '' })])
    expect(error).toMatchObject({ kind: 'invalid', code: 'bad_payload' })
  })

  test('no events at all', async () => {
    expect((await refusal([])).error).toMatchObject({ kind: 'invalid', code: 'empty_append' })
  })

  test('a batch that would not fit into a segment', async () => {
    const text = 'x'.repeat(1_000_000)
    const batch = Array.from({ length: 34 }, () => changed(finish, { metrics: { text } }))
    expect((await refusal(batch)).error).toMatchObject({
      kind: 'invalid',
      code: 'too_large',
      hint: expect.stringMatching(/split/),
    })
  })
})

test.each([
  { tenant_id: '..', workspace_id: 'a' },
  { tenant_id: 'a/b', workspace_id: 'a' },
  { tenant_id: '', workspace_id: 'a' },
  { tenant_id: 'a', workspace_id: 'A' },
  { tenant_id: 'a', workspace_id: 'a\0' },
  { tenant_id: 'a', workspace_id: 'a\n' },
  { tenant_id: 'x'.repeat(64), workspace_id: 'a' },
  { tenant_id: '-a', workspace_id: 'a' },
  { tenant_id: 'a', workspace_id: '_a' },
  { tenant_id: 'a', workspace_id: 'ä' },
  { tenant_id: 'a=b', workspace_id: 'a' },
  { tenant_id: '__proto__', workspace_id: 'a' },
  { tenant_id: 'a' },
  { tenant_id: 5, workspace_id: ['a'] },
])('[L7] nothing opens on %j, and nothing is read or written there', async (hostile) => {
  const store = countingStore(memoryStore())
  const clock = new VirtualClock()
  const ulid = ulidSource(() => clock.now(), seededBytes(7))
  const options = { store, scope: hostile as never, clock, ulid, registry: orchestration, name: 'test', source: 'test' }
  const openings = {
    leader: () => Loop.open({ ...options, controllers: [] }),
    compactor: () => Compactor.open(options),
    reader: () => View.open(options),
    writer: async () => new Ledger(options),
  }
  for (const [name, open] of Object.entries(openings))
    await expect(open(), name).rejects.toMatchObject({
      kind: 'invalid',
      code: 'bad_scope',
      hint: expect.stringMatching(/beginning with/),
    })
  expect(store.requests).toEqual([])
})

test.each(['a', '7', 'a-b_c-', `0${'x'.repeat(62)}`])('[L7] %s is a name for a tenant and a workspace', (name) => {
  const { root } = new Paths({ tenant_id: name, workspace_id: name })
  expect(root).toBe(`tenant=${name}/workspace=${name}/`)
})

test('more than may wait is refused as busy, and what waits is written all the same', async () => {
  const workspace = new Workspace()
  const gate = new Gate(() => true)
  const store = interceptedStore(workspace.store, gate.before)
  const ledger = workspace.ledger({ store, limits: { maxWaitingBytes: 1_000 } })
  const waiting = ['a', 'b', 'c'].map((id) => ledger.append([reportFact(id)]))
  await gate.arrived
  const busy = await ledger.append([reportFact('d')]).catch((error: unknown) => error)
  expect(busy).toMatchObject({ kind: 'unavailable', code: 'ledger_busy', hint: expect.stringMatching(/try again/) })
  gate.open()
  await Promise.all(waiting)
  expect((await workspace.eventCounts()).size).toBe(3)
  await ledger.append([reportFact('e')])
  expect((await workspace.eventCounts()).size).toBe(4)
})

test('an event says what was in it when it was appended, whatever its maker does with the values later', async () => {
  const workspace = new Workspace()
  const metrics = { rows: 1, nested: { list: [1, 2] } }
  const definition = { graph_version: 'g', assets: [{ asset_key: 'a', asset_id: 'a', definition: metrics }] }
  const { events } = await workspace.append(changed(finish, { metrics }), { definition: AssetsDefined, payload: definition })
  metrics.rows = 2
  metrics.nested.list.push(3)
  expect(events[0]!.payload['metrics']).toEqual({ rows: 1, nested: { list: [1, 2] } })
  expect(events[1]!.payload).toMatchObject({ assets: [{ definition: { rows: 1, nested: { list: [1, 2] } } }] })
})

test('an event cannot say for itself who it belongs to, when it happened or what its id is', async () => {
  const workspace = new Workspace()
  const forged = {
    ...enqueued!,
    scope: { tenant_id: 'other', workspace_id: 'other' },
    source: 'root',
    ulid: () => 'mine',
    clock: { now: () => 0 },
  }
  const { events } = await workspace.append(forged, { ...forged, definition: TaskFinished, payload: finish!.payload })
  for (const event of events)
    expect(event).toMatchObject({ ...scope, source: 'test', timestamp: expect.stringMatching(/^2025/) })
})
