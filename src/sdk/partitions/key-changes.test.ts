import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { materialize } from '../attempt/materialize.ts'
import { asset } from '../declare/asset.ts'
import { webhook } from '../declare/push-source.ts'
import { sensor } from '../declare/sensor.ts'
import { run } from '../declare/trigger.ts'
import { type DynamicPartitions, daily, dynamic } from './partitions.ts'

const customers = dynamic('customers')

describe('an asset that adds and removes partition keys', () => {
  test('tells them with its success, of each key the last that it said', async () => {
    const crm = asset('crm', {
      run({ partitions }) {
        partitions(customers).add(['acme', 'initech', 'hooli'])
        partitions(customers).remove(['initech', 'left'])
        partitions(customers).add(['left'])
      },
    })
    const { keys, ok } = await materialize(crm)
    expect(ok).toBe(true)
    expect(keys).toEqual({ added: { customers: ['acme', 'hooli', 'left'] }, removed: { customers: ['initech'] } })
  })

  test('tells none when it fails, also when only a check does', async () => {
    const throws = asset('throws', {
      run({ partitions }) {
        partitions(customers).add(['acme'])
        throw new Error('late')
      },
    })
    const unchecked = asset('unchecked', {
      run({ partitions }) {
        partitions(customers).add(['acme'])
        return 1
      },
      checks: { never: () => false },
    })
    for (const each of [await materialize(throws), await materialize(unchecked)])
      expect(each).toMatchObject({ ok: false, keys: { added: {}, removed: {} } })
  })

  const many = (count: number, length = 8) => Array.from({ length: count }, (_, i) => String(i).padStart(length, 'k'))
  test.each([
    ['no text', [7], /7 is not a key of customers/],
    ['an empty text', [''], /"" is not a key of customers/],
    ['a text of two lines', ['a\nb'], /must not contain control characters/],
    ['half a character', ['\ud800'], /half a surrogate pair/],
    ['a text that is too long', ['x'.repeat(256)], /is not a key of customers: must have at most 255 characters/],
    ['a text that means all', ['*'], /"\*" is not a key of customers: must not be \*/],
    ['more than can be told at once', many(10_001), /one attempt or evaluation changes 10001 partition keys/],
    [
      'more text than can be told at once',
      many(2_500, 255),
      /one attempt or evaluation changes 2500 partition keys \(637500 bytes\)/,
    ],
  ])('is refused %s, and says what to do', async (_, keys, message) => {
    const bad = asset('bad', { run: ({ partitions }) => partitions(customers).add(keys as string[]) })
    const { error, ok } = await materialize(bad)
    expect(ok).toBe(false)
    expect((error as Error).message).toMatch(message)
    expect(error).toHaveProperty('hint')
  })

  test('can do so only for a dynamic set', async () => {
    const day = daily({ start: '2025-01-01' }) as unknown as DynamicPartitions
    const bad = asset('bad', { run: ({ partitions }) => partitions(day).add(['2025-01-01']) })
    expect((await materialize(bad)).error).toMatchObject({ code: 'not_dynamic' })
  })
})

test('a sensor returns the keys it found with the runs it asks for, or instead of them', () => {
  const profile = asset('profile', { partitions: customers, run: () => 1 })
  const polled = sensor.poll('crm', {
    every: '5m',
    cursor: z.string(),
    poll: () => ({
      cursor: 'a',
      runs: [run(profile, { partition: 'acme' })],
      add: { partitions: customers, keys: ['acme'] },
      remove: [{ partitions: customers, keys: ['hooli'] }],
    }),
  })
  const source = webhook({ path: 'signups', verify: 'none', schema: z.object({ name: z.string() }) })
  const pushed = sensor.push('signups', {
    source,
    on: ({ name }) => ({ runs: [], add: { partitions: customers, keys: [name] } }),
  })
  // What the compiler accepts is the promise; this is what it must not.
  sensor.push('days', {
    source,
    // @ts-expect-error: only dynamic sets have keys that come and go.
    on: () => ({ runs: [], add: { partitions: daily({ start: '2025-01-01' }), keys: ['2025-01-01'] } }),
  })
  expect([polled.name, pushed.name]).toEqual(['crm', 'signups'])
})
