import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import type { AnyAsset } from '../any-asset.ts'
import { asset, table } from '../declare/asset.ts'
import { check } from '../declare/check.ts'
import { io } from '../declare/io.ts'
import { resource } from '../declare/resource.ts'
import { sql } from '../declare/sql.ts'
import { previous } from '../partitions/mapped.ts'
import { daily, keys, multi } from '../partitions/partitions.ts'
import { ranges } from '../partitions/ranges.ts'
import { materialize } from './materialize.ts'

const day = daily({ start: '2025-01-01', timezone: 'Europe/Paris' })
const market = multi({ day, region: keys(['eu', 'us']) })
const shop = resource('shop', {
  open: (): { orders(region: string): { id: string; amount: number; at: Date }[] } => ({ orders: () => [] }),
})

const orders = table('raw/orders', {
  partitions: market,
  schema: z.object({ id: z.string(), amount: z.number(), at: z.date() }),
  resources: { shop },
  checks: { 'one row per order': check.unique('id'), 'has amounts': check.notNull('amount') },
  run: ({ partition, resources, metadata }) => {
    metadata({ from: partition.window.day.start.toISOString() })
    return resources.shop.orders(partition.key.region)
  },
})

const revenue = table('mart/revenue', {
  partitions: day,
  schema: z.object({ orders: z.number(), revenue: z.number(), latest: z.date() }),
  inputs: { orders: orders.all('region') },
  checks: { 'never negative': async (it) => (await it.sql`select 1 from this where revenue < ${0}`).length === 0 },
  sql: ({ orders }) => sql`select count(*) as orders, sum(amount) as revenue, max("at") as latest from ${orders}`,
})

const row = (id: string, amount: number) => ({ id, amount, at: new Date('2025-03-01T10:00:00Z') })

describe('materialize', () => {
  test('runs a table with its partition, resources, checks and metadata', async () => {
    const given = { shop: { orders: (region: string) => [row(region, 1)] } }
    const { ok, value, checks, metadata } = await materialize(orders, {
      partition: { day: '2025-03-01', region: 'eu' },
      resources: given,
    })
    expect(ok).toBe(true)
    expect(await value.rows()).toEqual([row('eu', 1)])
    expect(checks['one row per order']).toEqual({ ok: true, severity: 'error', facts: { repeated: 0 } })
    expect(metadata).toEqual({ from: '2025-02-28T23:00:00.000Z' })
  })

  test('runs a query over rows that are given', async () => {
    const { value, checks } = await materialize(revenue, {
      partition: '2025-03-01',
      inputs: { orders: [row('1', 12.5), row('2', 7)] },
    })
    expect(await value.rows()).toEqual([{ orders: 2, revenue: 19.5, latest: new Date('2025-03-01T10:00:00Z') }])
    expect(checks['never negative']?.ok).toBe(true)
    for await (const { revenue } of value) expect(revenue).toBe(19.5)
  })

  test('takes what another one made', async () => {
    const first = await materialize(revenue, { partition: '2025-03-01', inputs: { orders: [row('1', 5)] } })
    const total = asset('total', {
      inputs: { revenue: revenue.all() },
      run: async ({ revenue }) => (await revenue.rows()).length,
    })
    expect((await materialize(total, { inputs: { revenue: first.value } })).value).toBe(1)
  })

  test('gives an empty table its columns', async () => {
    const kept = table('kept', {
      schema: z.object({ id: z.string() }),
      inputs: { orders: orders.all() },
      sql: () => sql`select id from orders where amount > 3`,
    })
    expect(await (await materialize(kept, { inputs: { orders: [] } })).value.rows()).toEqual([])
  })

  test('gives values of several partitions as a Map', async () => {
    const perRegion = asset('per-region', { partitions: market, run: () => 1 })
    const sum = asset('sum', {
      inputs: { all: perRegion.all('region') },
      run: ({ all }) => [...all].map(([key, n]) => `${key}${n}`),
    })
    expect(
      (
        await materialize(sum, {
          inputs: {
            all: new Map([
              ['eu', 1],
              ['us', 2],
            ]),
          },
        })
      ).value,
    ).toEqual(['eu1', 'us2'])
    expect((await materialize(sum, { inputs: { all: { eu: 3 } } })).value).toEqual(['eu3'])
  })

  test('gives values of some partitions as their words say, one or a Map', async () => {
    const perRegion = asset('per-region', { partitions: keys(['eu', 'us']), run: () => 1 })
    const mixed = asset('mixed', {
      inputs: { one: perRegion.at('eu'), list: perRegion.at(['eu']), newest: perRegion.last() },
      run: ({ one, list, newest }) => [one, list.get('eu') ?? null, newest],
    })
    expect((await materialize(mixed, { inputs: { one: 1, list: { eu: 2 }, newest: 3 } })).value).toEqual([1, 2, 3])
  })

  test('gives an asset its own past, or none', async () => {
    const stock = asset('stock', {
      partitions: day,
      inputs: { before: previous<number>() },
      run: ({ before }) => (before ?? 100) - 1,
    })
    expect((await materialize(stock, { partition: '2025-01-01' })).value).toBe(99)
    expect((await materialize(stock, { partition: '2025-01-02', inputs: { before: 7 } })).value).toBe(6)
    const ledger = table('ledger', {
      partitions: day,
      schema: z.object({ day: z.string() }),
      inputs: { before: previous() },
      run: async ({ before, partition }) => [...((await before?.rows()) ?? []), { day: partition.key }],
    })
    const first = await materialize(ledger, { partition: '2025-01-01' })
    const second = await materialize(ledger, { partition: '2025-01-02', inputs: { before: first.value } })
    expect(await second.value.rows()).toEqual([{ day: '2025-01-01' }, { day: '2025-01-02' }])
  })

  test('gives an asset that is made in ranges all its keys, and the time from the first to the last', async () => {
    const seen: unknown[] = []
    const loaded = asset('loaded', {
      partitions: ranges(market),
      run({ partition }) {
        seen.push(partition)
      },
    })
    const keys = [
      { day: '2025-01-01', region: 'eu' },
      { day: '2025-01-02', region: 'eu' },
    ] as const
    expect(await materialize(loaded, { partition: keys })).toMatchObject({ ok: true })
    expect(seen).toEqual([
      {
        key: 'day=2025-01-01..2025-01-02,region=eu',
        keys,
        window: { day: { start: new Date('2024-12-31T23:00Z'), end: new Date('2025-01-02T23:00Z') }, region: undefined },
      },
    ])
    const value = asset('value', { partitions: ranges(day), run: (() => 1) as unknown as () => void })
    expect((await materialize(value, { partition: ['2025-01-01'] })).error).toMatchObject({ code: 'range_value' })
    // The message is recorded for good: it says what the value is, and nothing of what is in it.
    const secret = { card: '4111', of: 'ada' }
    const shapes: [unknown, string][] = [
      [secret, 'an object with 2 members'],
      [[secret], 'a list of 1 item'],
      ['4111', 'text of 4 characters'],
      [4111, 'a number'],
      [new Map([['card', '4111']]), 'an object of the class Map'],
      [null, 'null'],
    ]
    for (const [returned, shape] of shapes) {
      const ranged = asset('ranged', { partitions: ranges(day), run: (() => returned) as unknown as () => void })
      const { error } = await materialize(ranged, { partition: ['2025-01-01'] })
      expect(error).toMatchObject({ message: expect.stringContaining(`returned ${shape}: Servo cannot split`) })
    }
    const rows = table('rows', { schema: z.object({ a: z.string() }), run: (() => secret) as unknown as () => [] })
    expect((await materialize(rows)).error).toMatchObject({
      message: 'table rows must return rows, not an object with 2 members',
    })
    const query = table('query', {
      schema: z.object({ a: z.string() }),
      run: (() => sql`select 1 as a`) as unknown as () => [],
    })
    expect((await materialize(query)).error).toMatchObject({
      message: 'run of query returns a query',
      hint: expect.stringMatching(/^Put it into sql: /),
    })
  })

  test('sends values through their io', async () => {
    const dates = io<Date>('date', {
      write: (date) => date.toISOString(),
      read: (bytes) => new Date(new TextDecoder().decode(bytes)),
    })
    const now = asset('now', { io: dates, run: () => new Date(0) })
    const year = asset('year', { inputs: { now }, run: ({ now }) => now.getUTCFullYear() })
    expect((await materialize(year, { inputs: { now: new Date(0) } })).value).toBe(1970)
  })

  test('of something that fails says why, and its value throws the same', async () => {
    const boom = new Error('boom')
    const result = await materialize(
      asset('a', {
        run: () => {
          throw boom
        },
      }),
    )
    expect(result).toMatchObject({ ok: false, error: boom })
    expect(() => result.value).toThrow(boom)
  })

  test('keeps what failed a check, to look at', async () => {
    const given = { shop: { orders: () => [row('1', 1), row('1', 2)] } }
    const { ok, value, checks, error } = await materialize(orders, {
      partition: { day: '2025-03-01', region: 'eu' },
      resources: given,
    })
    expect({ ok, rows: (await value.rows()).length }).toEqual({ ok: false, rows: 2 })
    expect(checks['one row per order']).toMatchObject({ ok: false, facts: { repeated: 1 } })
    expect((error as Error).message).toMatch(/checks of raw\/orders failed: one row per order \(1 duplicate value of id: 1\)/)
  })

  /** What JavaScript lets through; the compiler refuses most of it (test/sdk/mistakes). */
  const unchecked = (asset: AnyAsset, options: object) => materialize(asset, options)

  test.each([
    ['an unknown input', () => unchecked(revenue, { partition: '2025-03-01', inputs: { order: [] } }), /has no input `order`/],
    [
      'rows that are not a list',
      () => unchecked(revenue, { partition: '2025-03-01', inputs: { orders: 7 } }),
      /input orders is 7/,
    ],
    ['something that is not an asset', () => materialize({ key: 'x' }), /is not an asset/],
  ])('refuses %s', async (_, run, message) => {
    await expect(run()).rejects.toMatchObject({ kind: 'invalid', message: expect.stringMatching(message) })
  })

  test.each([
    ['an input is missing', { partition: '2025-03-01' }, /mart\/revenue is missing its input orders/],
    ['the partition is missing', { inputs: { orders: [] } }, /mart\/revenue has partitions, but the request names none/],
    ['the partition does not exist', { partition: '2025-02-30', inputs: { orders: [] } }, /2025-02-30 is not a partition/],
  ])('fails when %s', async (_, options, message) => {
    expect((await unchecked(revenue, options)).error).toMatchObject({ message: expect.stringMatching(message) })
  })
})
