import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { ServoError } from '../../lib/error.ts'
import { optionsOf } from '../declaration.ts'
import { daily, keys, multi } from '../partitions/partitions.ts'
import { asset } from './asset.ts'
import { pubsub, webhook } from './push-source.ts'
import { resource } from './resource.ts'
import { sensor } from './sensor.ts'
import type { AssetEvent } from './sensor-options.ts'
import { run, schedule } from './trigger.ts'

const plain = asset('plain', { run: () => 1 })
const day = daily({ start: '2025-01-01' })
const perDay = asset('per-day', { partitions: day, run: () => 1 })
const cube = asset('cube', { partitions: multi({ day, region: keys(['eu', 'us']) }), run: () => 1 })
const schema = z.object({ order: z.string() })
const open = webhook({ path: 'orders', verify: 'none', schema })
const on = () => undefined
const poll = () => ({ runs: [] })
/** What JavaScript lets authors write. */
const loose = (declare: unknown) => declare as (...args: unknown[]) => unknown

/** The error of a declaration that is refused. */
function refusal(declare: () => unknown): ServoError {
  try {
    declare()
  } catch (error) {
    return error as ServoError
  }
  throw new Error('it was accepted')
}

describe('[A34] a sensor or a condition that cannot work is refused where it is declared', () => {
  test.each<[title: string, declare: () => unknown, message: RegExp, hint: RegExp]>([
    ['no options', () => loose(sensor.push)('s'), /sensor s needs options/, /sensor\.push\('s'/],
    [
      'a misspelled option',
      () => loose(sensor.push)('s', { source: open, on, maxTry: 1 }),
      /sensor s: unknown option `maxTry`/,
      /maxTries/,
    ],
    [
      'an option of another kind',
      () => loose(sensor.poll)('s', { every: '1m', cursor: schema, poll, maxTries: 3 }),
      /maxTries/,
      /every/,
    ],
    [
      'a name with spaces',
      () => sensor.push('my sensor', { source: open, on }),
      /"my sensor" is not a valid name for a sensor/,
      /letters/,
    ],
    [
      'a short timeout',
      () => sensor.push('s', { source: open, on, timeout: '1ms' }),
      /`timeout` of sensor s is out of range: "1ms"/,
      /'100ms' to '10m'/,
    ],
    [
      'a timeout in words',
      () => loose(sensor.push)('s', { source: open, on, timeout: 'long' }),
      /`timeout` of sensor s must be a duration, not "long"/,
      /'30s'/,
    ],
    [
      'no try',
      () => sensor.push('s', { source: open, on, maxTries: 0 }),
      /`maxTries` of sensor s must be a whole number from 1 to 100, not 0/,
      /dead letter/,
    ],
    [
      'a selection of nothing',
      () => sensor.push('s', { source: open, on, select: [] }),
      /sensor s has an empty `select`/,
      /select/,
    ],
    [
      'an invalid resource',
      () => loose(sensor.push)('s', { source: open, on, resources: { a: 1 } }),
      /resource `a` of sensor s cannot be 1/,
      /resource\(\)/,
    ],
    [
      'enabled in words',
      () => loose(sensor.push)('s', { source: open, on, enabled: 'no' }),
      /`enabled` of sensor s cannot be "no"/,
      /true or false/,
    ],
    [
      'an empty description',
      () => sensor.push('s', { source: open, on, description: '' }),
      /description/,
      /Write a non-empty string\./,
    ],
    [
      'an invalid former name',
      () => sensor.push('s', { source: open, on, renamedFrom: '' }),
      /"" is not a valid name for a sensor/,
      /letters/,
    ],
    ['no handler', () => loose(sensor.push)('s', { source: open }), /sensor s needs `on`/, /on: /],
    [
      'a poll too often',
      () => sensor.poll('s', { every: '10ms', cursor: schema, poll }),
      /`every` of sensor s is out of range: "10ms"/,
      /'1s' to '31d'/,
    ],
    [
      'a long interval',
      () => sensor.poll('s', { every: '1m', minInterval: '3d', cursor: schema, poll }),
      /minInterval/,
      /'1d'/,
    ],
    [
      'a poll without a cursor',
      () => loose(sensor.poll)('s', { every: '1m', poll }),
      /`cursor` of sensor s needs a schema/,
      /schema/,
    ],
    ['nothing to watch', () => sensor.asset('s', { watch: [], on }), /needs something to `watch`/, /watch: \[orders\]/],
    ['no watch at all', () => loose(sensor.asset)('s', { on }), /needs something to `watch`/, /watch/],
    [
      'a watch that is not a key',
      () => sensor.asset('s', { watch: 'a b', on }),
      /"a b" is not an asset or an asset key, in sensor s/,
      /joined by/,
    ],
    [
      'an unknown happening',
      () => loose(sensor.asset)('s', { watch: plain, happenings: ['made'], on }),
      /`happenings` of sensor s cannot be \["made"\]/,
      /'materialized', 'check_failed'/,
    ],
    [
      'no happening',
      () => sensor.asset('s', { watch: plain, happenings: [], on }),
      /`happenings` of sensor s cannot be \[\]/,
      /'materialized'/,
    ],
    [
      'an unknown state',
      () => loose(sensor.run)('s', { states: ['BROKEN'], on }),
      /`states` of sensor s cannot be \["BROKEN"\]/,
      /'FAILED'/,
    ],
    ['no state', () => loose(sensor.run)('s', { on }), /`states` of sensor s cannot be undefined/, /'SUCCEEDED'/],
    [
      'runs of nothing',
      () => sensor.run('s', { states: ['FAILED'], watch: [], on }),
      /sensor s needs something to `watch`/,
      /watch/,
    ],
    [
      'a path of two words',
      () => webhook({ path: 'a/b', verify: 'none', schema }),
      /`path` of a webhook cannot be "a\/b"/,
      /one word/,
    ],
    [
      'an unknown check',
      () => loose(webhook)({ path: 'a', verify: 'magic', schema }),
      /`verify` of webhook a cannot be "magic"/,
      /'token'/,
    ],
    ['a webhook without a schema', () => loose(webhook)({ path: 'a', verify: 'none' }), /webhook a needs a schema/, /schema/],
    [
      'an unknown option of a webhook',
      () => loose(webhook)({ path: 'a', verify: 'none', schema, token: 'x' }),
      /webhook a: unknown option `token`/,
      /secret/,
    ],
    ['an invalid topic', () => pubsub({ topic: '', schema }), /`topic` cannot be ""/, /projects/],
    ['an invalid audience', () => pubsub({ topic: 't', audience: '', schema }), /`audience` of pubsub t cannot be ""/, /https/],
    [
      'a condition that is not code',
      () => loose(schedule)('s', { cron: '@daily', select: plain, when: true }),
      /`when` of s must be a function, not true/,
      /scheduledFor/,
    ],
    [
      'a timeout without a condition',
      () => schedule('s', { cron: '@daily', select: plain, timeout: '5s' }),
      /schedule s has `timeout` but no `when`/,
      /Remove `timeout`/,
    ],
    [
      'an unknown option of a schedule',
      () => loose(schedule)('s', { cron: '@daily', select: plain, retries: 3 }),
      /schedule s: unknown option `retries`/,
      /catchup/,
    ],
    [
      'an unknown option of a catch-up',
      () => loose(schedule)('s', { cron: '@daily', select: plain, catchup: { window: '1h', maxx: 3 } }),
      /`catchup` of schedule s: unknown option `maxx`/,
      /Did you mean `max`\? Options: window, max, onResume/,
    ],
    [
      'an invalid catch-up',
      () => loose(schedule)('s', { cron: '@daily', select: plain, catchup: '1h' }),
      /`catchup` of s cannot be "1h"/,
      /window: '24h'/,
    ],
    [
      'a schedule without a selection',
      () => loose(schedule)('s', { cron: '@daily' }),
      /schedule s needs `select`/,
      /select: \[/,
    ],
    [
      'labels that are no texts',
      () => loose(run)(plain, { labels: { a: 1 } }),
      /`labels` of run\(plain\) must be an object of strings, not \{"a":1\}/,
      /object of strings/,
    ],
    [
      'a priority that is not a number',
      () => loose(run)(plain, { priority: 'high' }),
      /`priority` of run\(plain\) must be a whole number from -1000 to 1000, not "high"/,
      /higher/,
    ],
    [
      'an unknown option of a run',
      () => loose(run)(plain, { partitions: 'x' }),
      /run\(plain\): unknown option `partitions`/,
      /partition, key/,
    ],
  ])('%s', (_, declare, message, hint) => {
    const error = refusal(declare)
    expect(error.message).toMatch(message)
    expect(error.hint).toMatch(hint)
  })
})

describe('[A35] a webhook names the variables that have its secrets, and says no secret', () => {
  test('one, or several while they are replaced, the newest first', () => {
    const one = webhook({ path: 'a', verify: 'token', secret: 'SHOP_TOKEN', schema })
    const two = webhook({ path: 'b', verify: 'github', secret: ['SHOP_2026', 'SHOP_2025'], schema })
    expect([one.data, two.data]).toEqual([
      { type: 'webhook', path: 'a', verify: 'token', secrets: ['SHOP_TOKEN'] },
      { type: 'webhook', path: 'b', verify: 'github', secrets: ['SHOP_2026', 'SHOP_2025'] },
    ])
  })

  test.each(['standard', 'github', 'token'])('%s needs one', (verify) => {
    for (const secret of [undefined, []])
      expect(refusal(() => loose(webhook)({ path: 'a', verify, secret, schema })).message).toContain('webhook a needs a secret')
  })

  test('none takes none', () => {
    const error = refusal(() => loose(webhook)({ path: 'a', verify: 'none', secret: 'A', schema }))
    expect(error.message).toContain("webhook a has a secret, but `verify: 'none'` does not use it")
  })

  test.each(['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw=', '', 5])(
    '%s is not the name of a variable, and is not repeated',
    (secret) => {
      const error = refusal(() => loose(webhook)({ path: 'a', verify: 'standard', secret, schema }))
      expect(error.message).toBe('`secret` of webhook a must be the name of an environment variable')
      expect(`${error.message} ${error.hint}`).not.toContain('MfKQ9r8G')
    },
  )

  test('no more than can be kept', () => {
    const secret = Array.from({ length: 11 }, (_, i) => `S${i}`)
    expect(refusal(() => webhook({ path: 'a', verify: 'token', secret, schema })).message).toContain('11 secrets')
  })
})

test('a run takes labels and a priority besides its key', () => {
  expect(run(perDay, { partition: '2025-01-02', key: 'k', labels: { why: 'late' }, priority: 7 })).toEqual({
    assetKey: 'per-day',
    partition: { key: '2025-01-02' },
    runKey: 'k',
    labels: { why: 'late' },
    priority: 7,
  })
})

test('the compiler knows what each sensor gets', () => {
  type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
  const is = <Expected>() => ({
    exactly: <Given>(_: Given, ..._wrong: Same<Given, Expected> extends true ? [] : [Given]) => [],
  })
  const shop = resource('shop', { open: () => ({ orders: 3 }) })
  const own = webhook({ path: 'own', verify: 'none', schema: z.object({ id: z.number() }) })
  const text = pubsub({ topic: 't', schema: z.string() })
  const sensors = [
    sensor.push('a', {
      source: open,
      resources: { shop },
      on({ order, id }, context) {
        is<string>().exactly(order)
        is<string>().exactly(id)
        is<string>().exactly(context.id)
        is<Date | undefined>().exactly(context.publishedAt)
        is<Readonly<Record<string, string>>>().exactly(context.attributes)
        return is<number>().exactly(context.resources.shop.orders)
      },
    }),
    // An event may have an id of its own, and need not be an object.
    sensor.push('b', { source: own, on: (event, { id }) => [...is<number>().exactly(event.id), ...is<string>().exactly(id)] }),
    sensor.push('c', { source: text, on: (event) => is<string>().exactly(event) }),
    sensor.asset('d', {
      watch: perDay,
      on: (event) => {
        is<'materialized'>().exactly(event.type)
        return run(perDay, { partition: event.partition })
      },
    }),
    sensor.asset('e', { watch: [cube], on: ({ partition }) => run(perDay, { partition: partition.day }) }),
    sensor.asset('f', {
      watch: ['plain'],
      happenings: ['check_failed'],
      on: (event) => {
        is<AssetEvent<'check_failed', 'plain'>>().exactly(event)
        return [...is<readonly string[]>().exactly(event.checks), ...is<string | undefined>().exactly(event.partition)]
      },
    }),
    sensor.asset('g', { watch: plain, on: (event) => is<undefined>().exactly(event.partition) }),
    sensor.run('h', {
      states: ['FAILED', 'CANCELLED'],
      on: (event) => [...is<'FAILED' | 'CANCELLED'>().exactly(event.state), ...is<readonly string[]>().exactly(event.assets)],
    }),
  ]
  // @ts-expect-error: runs do not end so.
  expect(() => sensor.run('i', { states: ['QUEUED'], on })).toThrow('states')
  // @ts-expect-error: senders are verified with a secret.
  expect(() => webhook({ path: 'a', verify: 'standard', schema })).toThrow('webhook a needs a secret')
  // @ts-expect-error: there is nothing to verify with it.
  expect(() => webhook({ path: 'a', verify: 'none', secret: 'A', schema })).toThrow('does not use it')
  // @ts-expect-error: a condition says yes or no.
  const asked = schedule('s', { cron: '@daily', select: plain, when: () => 'yes' })
  expect(optionsOf(asked)).toMatchObject({ cron: '@daily' })
  expect(sensors.map(({ name }) => name).join('')).toBe('abcdefgh')
})
