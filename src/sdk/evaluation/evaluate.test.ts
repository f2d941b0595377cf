import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { EvaluationRequest, Happening } from '../../contract/evaluation.ts'
import { asset } from '../declare/asset.ts'
import { webhook } from '../declare/push-source.ts'
import { resource } from '../declare/resource.ts'
import { type Sensor, sensor } from '../declare/sensor.ts'
import { run, type Schedule, type ScheduleOptions, schedule } from '../declare/trigger.ts'
import { daily, dynamic, keys, multi } from '../partitions/partitions.ts'
import { evaluate } from './evaluate.ts'

const day = daily({ start: '2025-01-01' })
const customers = dynamic('customers')
const orders = asset('orders', { run: () => 1 })
const revenue = asset('revenue', { partitions: day, run: () => 1 })
const cube = asset('cube', { partitions: multi({ day, region: keys(['eu', 'us']) }), run: () => 1 })
const open = webhook({ path: 'orders', verify: 'none', schema: z.object({ order: z.string() }) })

const AT = '2025-03-01T05:00:00.000Z'
const common = { evaluation_id: 'e1', timeout_ms: 1_000 }
const message = { id: 'msg_1', data: { order: 'o1' }, attributes: { kind: 'new' }, published_at: AT }

function evaluated(declared: Sensor | Schedule, request: EvaluationRequest, warned: string[] = []) {
  const both = new Map([[declared.name, declared]])
  const signal = new AbortController().signal
  return evaluate({ sensors: both, schedules: both }, request, {
    signal,
    environment: {},
    warn: (text) => void warned.push(text),
  })
}

const told = (declared: Sensor, data: unknown = message.data) =>
  evaluated(declared, { ...common, of: 'message', sensor: declared.name, message: { ...message, data } })

const polled = (declared: Sensor, cursor: string | null = null) =>
  evaluated(declared, { ...common, of: 'poll', sensor: declared.name, cursor })

const happened = (declared: Sensor, happening: Happening) =>
  evaluated(declared, { ...common, of: 'happening', sensor: declared.name, id: 'hap_1', happening })

describe('[A36] a sensor that gets messages', () => {
  test('gets the event with its id, and what came with it', async () => {
    const seen: unknown[] = []
    const hook = sensor.push('hook', {
      source: open,
      on: (event, { id, attributes, publishedAt, signal }) => {
        seen.push(event, id, attributes, publishedAt, signal.aborted)
      },
    })
    expect(await told(hook)).toEqual({ outcome: 'requests', runs: [] })
    expect(seen).toEqual([{ order: 'o1', id: 'msg_1' }, 'msg_1', { kind: 'new' }, new Date(AT), false])
  })

  test.each([
    ['an id of its own', z.object({ id: z.number() }), { id: 7 }],
    ['a list', z.array(z.number()), [1, 2]],
    ['text', z.string(), 'hello'],
    ['nothing', z.null(), null],
  ])('gets %s as it is', async (_, schema: z.ZodType, data) => {
    const seen: unknown[] = []
    const hook = sensor.push('hook', {
      source: webhook({ path: 'a', verify: 'none', schema }),
      on: (event) => void seen.push(event),
    })
    await told(hook, data)
    expect(seen).toEqual([data])
  })

  test('gets no message that does not fit its schema', async () => {
    const hook = sensor.push('hook', { source: open, on: () => expect.unreachable() })
    await expect(told(hook, { order: 5 })).rejects.toThrow(
      /^order does not match the schema: Invalid input: expected string, received number/,
    )
  })

  test.each([
    ['one run', () => run(orders), [{ asset_selection: ['orders'] }]],
    [
      'several',
      () => [run(orders, { key: 'k', labels: { a: 'b' }, priority: 3 }), run(revenue, { partition: '2025-01-02' })],
      [
        { asset_selection: ['orders'], key: 'k', labels: { a: 'b' }, priority: 3 },
        { asset_selection: ['revenue'], partition_selection: ['2025-01-02'] },
      ],
    ],
    [
      'a promise of a run of several dimensions',
      async () => ({ runs: [run(cube, { partition: { day: '2025-01-02', region: 'eu' } })] }),
      [{ asset_selection: ['cube'], partition_selection: ['day=2025-01-02,region=eu'] }],
    ],
    ['nothing', () => undefined, []],
  ])('asks for %s', async (_, on, runs) => {
    expect(await told(sensor.push('hook', { source: open, on }))).toEqual({ outcome: 'requests', runs })
  })

  test('changes keys with its runs, and a key that both comes and goes comes', async () => {
    const add = { partitions: customers, keys: ['acme', 'both'] }
    const remove = [{ partitions: customers, keys: ['hooli', 'both'] }]
    const hook = sensor.push('hook', { source: open, on: () => ({ runs: [], add, remove }) })
    expect(await told(hook)).toEqual({
      outcome: 'requests',
      runs: [],
      partition_keys_added: [{ set_name: 'customers', keys: ['both', 'acme'] }],
      partition_keys_removed: [{ set_name: 'customers', keys: ['hooli'] }],
    })
  })

  const loop: { self?: unknown } = {}
  loop.self = loop
  test.each<[returned: unknown, message: RegExp]>([
    [
      'orders',
      /sensor hook returned "orders"\. Return run\(orders, \{ … \}\), an array of such requests, or \{ runs: \[ … \] \}\./,
    ],
    [orders, /sensor hook returned \{"key":"orders"\}/],
    [[run(orders), 5], /sensor hook returned 5/],
    [{ run: run(orders) }, /sensor hook returned \{"run"/],
    [{ runs: [], cursor: 'a' }, /sensor hook returned an unknown field, `cursor`\. Return runs, add, remove\./],
    [{ runs: [], add: ['acme'] }, /sensor hook returned add: \["acme"\]/],
    [
      { runs: [], add: { partitions: day, keys: ['2025-01-01'] } },
      /partitions\(daily\) is not a dynamic set\. Pass the result of dynamic\(\): partitions\(customers\), where customers i/,
    ],
    [loop, /sensor hook returned something that is not JSON/],
  ])('that returns %j is told what to return', async (returned, expected) => {
    const hook = sensor.push('hook', { source: open, on: (() => returned) as () => undefined })
    const error = await told(hook).catch((thrown) => thrown)
    expect(`${error.message}. ${error.hint}`).toMatch(expected)
  })
})

describe('[A36] a sensor that polls', () => {
  const after = z.object({ after: z.string() })

  test('begins without a cursor, and goes on from the one it returned', async () => {
    const seen: unknown[] = []
    const files = sensor.poll('files', {
      every: '1m',
      cursor: after,
      poll({ cursor }) {
        seen.push(cursor)
        return { cursor: { after: `${cursor?.after ?? ''}x` }, runs: [run(orders)] }
      },
    })
    expect(await polled(files)).toEqual({
      outcome: 'requests',
      runs: [{ asset_selection: ['orders'] }],
      cursor: '{"after":"x"}',
    })
    expect(await polled(files, '{"after":"x"}')).toMatchObject({ cursor: '{"after":"xx"}' })
    expect(seen).toEqual([undefined, { after: 'x' }])
  })

  test('keeps its cursor when it returns none', async () => {
    const files = sensor.poll('files', { every: '1m', cursor: after, poll: () => ({ runs: [] }) })
    expect(await polled(files, '{"after":"x"}')).toEqual({ outcome: 'requests', runs: [] })
  })

  test('writes the same cursor in the same way', async () => {
    const both = z.object({ a: z.number(), b: z.number() })
    const cursors = [{ a: 1, b: 2 }, { b: 2, a: 1 }] // biome-ignore format: the order is the point
    const written = cursors.map(async (cursor) => {
      const files = sensor.poll('files', { every: '1m', cursor: both, poll: () => ({ cursor, runs: [] }) })
      return await polled(files)
    })
    const [one, other] = await Promise.all(written)
    expect(one).toEqual(other)
  })

  test.each<[title: string, returned: unknown, message: RegExp]>([
    [
      'is not JSON',
      { cursor: { after: new Date(0) }, runs: [] },
      /the cursor that sensor files returned cannot be stored: an instance of Date cannot be written as JSON/,
    ],
    [
      'does not fit',
      { cursor: { after: 5 }, runs: [] },
      /the cursor that sensor files returned does not match its schema: after: Invalid input: expected string, received number/,
    ],
    ['is nothing', undefined, /sensor files cannot return undefined/],
    ['is a list', [run(orders)], /sensor files cannot return \[\{"assetKey":"orders"\}\]/],
    ['has no runs', { cursor: { after: '' } }, /sensor files returned \{"cursor"/],
  ])('a result that %s is an error', async (_, returned, expected) => {
    const code = (() => returned) as () => { runs: [] }
    await expect(polled(sensor.poll('files', { every: '1m', cursor: after, poll: code }))).rejects.toThrow(expected)
  })

  test.each(['{"after":5}', 'not JSON'])(
    'a cursor on record that cannot be read says how to begin anew: %s',
    async (cursor) => {
      const files = sensor.poll('files', { every: '1m', cursor: after, poll: () => expect.unreachable() })
      const error = await polled(files, cursor).catch((thrown) => thrown)
      expect(error.message).toContain(cursor)
      expect(error.hint).toMatch(/reset-cursor \w+$/)
    },
  )
})

describe('[A36] a sensor that watches', () => {
  const made = { asset_key: 'cube', partition_key: 'day=2025-01-02,region=eu', run_id: 'run_1', at: AT }

  test('gets an asset and its partition as the code of that asset knows it', async () => {
    const late = sensor.asset('late', {
      watch: [cube, revenue],
      on: (event, { id }) => {
        expect(event).toEqual({
          ...{ type: 'materialized', asset: 'cube' },
          partition: { day: '2025-01-02', region: 'eu' },
          runId: 'run_1',
          at: new Date(AT),
        })
        return run(orders, { key: id })
      },
    })
    expect(await happened(late, { type: 'materialized', ...made })).toMatchObject({ runs: [{ key: 'hap_1' }] })
  })

  test('gets text for the key of an asset, and nothing where there is nothing', async () => {
    const seen: unknown[] = []
    const late = sensor.asset('late', { watch: 'cube', happenings: ['check_failed'], on: (event) => void seen.push(event) })
    const failed = { type: 'check_failed', ...made, checks: ['one row per order'] } as const
    await happened(late, failed)
    await happened(late, { ...failed, partition_key: null, run_id: null })
    expect(seen).toMatchObject([
      { partition: made.partition_key, runId: 'run_1', checks: ['one row per order'] },
      { partition: undefined, runId: undefined },
    ])
  })

  test('gets the end of a run', async () => {
    const seen: unknown[] = []
    const alert = sensor.run('alert', { states: ['FAILED'], on: (event) => void seen.push(event) })
    const ended = { run_id: 'run_1', state: 'FAILED', asset_selection: ['orders'], labels: { a: 'b' }, at: AT } as const
    await happened(alert, { type: 'run', ...ended })
    expect(seen).toEqual([{ runId: 'run_1', state: 'FAILED', assets: ['orders'], labels: { a: 'b' }, at: new Date(AT) }])
    await expect(happened(alert, { type: 'materialized', ...made })).rejects.toThrow('sensor alert changed its kind')
  })
})

test('[A36] resources are opened for each evaluation, and closed whatever becomes of it', async () => {
  const log: string[] = []
  const thing = (name: string, close: () => void) =>
    resource(name, {
      open: () => log.push(`open ${name}`),
      close() {
        log.push(`close ${name}`)
        close()
      },
    })
  const fails = () => {
    throw new Error('still busy')
  }
  const hook = sensor.push('hook', {
    source: open,
    resources: { first: thing('first', () => undefined), second: thing('second', fails) },
    on({ order }, { resources }) {
      log.push(`first ${resources.first}`)
      if (order === 'bad') throw new Error('no such order')
    },
  })
  const warned: string[] = []
  const about = { ...common, of: 'message', sensor: 'hook' } as const
  await evaluated(hook, { ...about, message }, warned)
  await expect(evaluated(hook, { ...about, message: { ...message, data: { order: 'bad' } } }, warned)).rejects.toThrow(
    'no such order',
  )
  const each = ['open first', 'open second', expect.stringMatching(/^first /), 'close second', 'close first']
  expect(log).toEqual([...each, ...each])
  expect(warned).toEqual(Array(2).fill('closing second failed: still busy'))
})

test('[A36] code that is not there any more is an error', async () => {
  const hook = sensor.push('hook', { source: open, on: () => undefined })
  const gone = evaluated(hook, { ...common, of: 'poll', sensor: 'files', cursor: null })
  await expect(gone).rejects.toThrow('the project no longer declares the sensor files')
  const nightly = schedule('nightly', { cron: '@daily', select: orders })
  const asked = evaluated(nightly, { ...common, of: 'condition', schedule: 'nightly', scheduled_for: AT })
  await expect(asked).rejects.toThrow('the project no longer declares the condition of schedule nightly')
})

describe('the condition of a schedule', () => {
  const judged = (when: NonNullable<ScheduleOptions['when']>) =>
    evaluated(schedule('nightly', { cron: '@daily', select: orders, when }), {
      ...common,
      ...{ of: 'condition', schedule: 'nightly', scheduled_for: AT },
    })

  test('says yes or no, with the reason', async () => {
    expect(await judged(({ scheduledFor }) => scheduledFor.toISOString() === AT)).toEqual({ outcome: 'condition', holds: true })
    const no = { outcome: 'condition', holds: false, reason: 'closed' }
    expect(await judged(async () => ({ run: false, reason: 'closed' }))).toEqual(no)
    expect(await judged(() => ({ run: false, reason: 'x'.repeat(5_000) }))).toMatchObject({ reason: 'x'.repeat(1_000) })
  })

  test.each<unknown>([undefined, 'yes', { reason: 'closed' }, { run: false, reason: 5 }])('does not say %j', async (said) => {
    await expect(judged((() => said) as () => boolean)).rejects.toThrow('`when` of schedule nightly cannot return')
  })
})
