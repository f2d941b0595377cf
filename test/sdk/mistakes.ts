// Each expectation proves that a common mistake is a compile error: the type check fails when one of them is not.
import { asset, check, command, daily, io, keys, monthly, multi, previous, ranges, resource, run, sql, table } from 'servo-flow'
import { materialize } from 'servo-flow/test'
import { z } from 'zod'
import type { NotJson } from '../../src/sdk/declare/json-value.ts'
import { orders } from './shop/assets/orders.ts'
import { forecast, headline, revenue } from './shop/assets/revenue.ts'

const plain = asset('plain', { run: () => ({ total: 1 }) })
const id = z.object({ id: z.string() })

// @ts-expect-error 1 unknown region
run(orders, { partition: { day: '2025-01-01', region: 'mars' } })

// @ts-expect-error 2 missing dimension
run(orders, { partition: { day: '2025-01-01' } })

// @ts-expect-error 3 partition is required on a partitioned asset
run(revenue)

// @ts-expect-error 4 no partition on an unpartitioned asset
run(plain, { partition: '2025-01-01' })

// @ts-expect-error 5 not a day
run(headline, { partition: 'yesterday' })

// @ts-expect-error 6 a command stores its own data: it has no value to load
asset('x', { inputs: { forecast }, run: () => 1 })

// @ts-expect-error 7 not a dimension of the upstream partitions
orders.all('country')

// @ts-expect-error 8 typo in an upstream value
asset('y', { inputs: { plain }, run: ({ plain }) => plain.totl })

// @ts-expect-error 9 rows do not match the schema
table('rows', { schema: id, run: () => [{ id: 1 }] })

asset('meta', {
  metadata: z.object({ rows: z.number() }),
  run({ metadata }) {
    // @ts-expect-error 10 wrong metadata type
    metadata({ rows: '12' })
    return 1
  },
})

table('col', {
  schema: id,
  // @ts-expect-error 11 no such column
  checks: { u: check.unique('idd') },
  run: () => [{ id: '1' }],
})

asset('part', {
  partitions: keys(['a', 'b']),
  // @ts-expect-error 12 the keys are "a" | "b"
  run: ({ partition }) => (partition.key === 'c' ? 1 : 2),
})

// @ts-expect-error 13 unpartitioned: there is no partition in the context
asset('nopart', { run: ({ partition }) => partition.key })

// @ts-expect-error 14 both a body and a query
table('both', { schema: id, run: () => [{ id: '1' }], sql: () => sql`select 1` })

// @ts-expect-error 15 not a duration
asset('slow', { timeout: '5 minutes', run: () => 1 })

// @ts-expect-error 16 an input cannot take the name of something in the context
asset('named', { inputs: { log: plain }, run: () => 1 })

// @ts-expect-error 17 an asset that returns nothing has no value to load
asset('from-nothing', { inputs: { nothing: asset('nothing', { run: () => {} }) }, run: () => 1 })

const text = io('text', { write: (value: string) => value, read: (bytes) => new TextDecoder().decode(bytes) })
// @ts-expect-error 18 the IO is for other values
asset('page', { run: () => 1, io: text })

const shop = resource('shop', { open: () => ({ orders: 1 }) })
// @ts-expect-error 19 no such thing in the resource
asset('shopping', { resources: { shop }, run: ({ resources }) => resources.shop.customers })

// @ts-expect-error 20 a misspelled option
asset('misspelled', { timout: '5m', run: () => 1 })

// @ts-expect-error 21 an unpartitioned command has no key to put into its words
command('words', { run: ['echo', (partition) => partition.key.day] })

// @ts-expect-error 22 not a partition of the asset
materialize(revenue, { partition: 'monday' })

asset('checked', {
  run: () => ({ total: 1 }),
  // @ts-expect-error 23 a check of something that the value does not have
  checks: { positive: (value) => value.sum > 0 },
})

// @ts-expect-error 24 windows are counted
revenue.offset('yesterday')

const day = daily({ start: '2025-01-01' })
const city = keys(['berlin', 'boston'])
const sold = asset('sold', { partitions: day, run: () => 1 })
const perRegion = asset('per-region', { partitions: keys(['eu', 'us']), run: () => 1 })

// @ts-expect-error 25 not a key of the upstream partitions
perRegion.at('mars')

// @ts-expect-error 26 not a key of the upstream partitions
perRegion.map({ berlin: 'europe' })

// @ts-expect-error 27 paris is not a partition of the asset
asset('per-city', { partitions: city, inputs: { region: perRegion.map({ paris: 'eu' }) }, run: ({ region }) => region })

// @ts-expect-error 28 seven windows are a Map, and no number
asset('week', { partitions: day, inputs: { sold: sold.window({ from: -6, to: 0 }) }, run: ({ sold }) => sold + 1 })

// @ts-expect-error 29 a month has many days, so it gets a Map of them
asset('month', { partitions: monthly({ start: '2025-01' }), inputs: { sold }, run: ({ sold }) => sold + 1 })

// @ts-expect-error 30 the first window has none before it
asset('stock', { partitions: day, inputs: { before: previous<number>() }, run: ({ before }) => before + 1 })

// @ts-expect-error 31 its own past is what it returns
asset('stock', { partitions: day, inputs: { before: previous<string>() }, run: () => 1 })

// @ts-expect-error 32 the compiler has to be told what a value was
asset('stock', { partitions: day, inputs: { before: previous() }, run: () => 1 })

// @ts-expect-error 33 an asset that keeps its own data has no past to load
asset('kept', { partitions: day, inputs: { before: previous<number>() }, run: () => {} })

table('rows-before', {
  partitions: day,
  schema: id,
  inputs: { before: previous() },
  // @ts-expect-error 34 no such column in its own rows
  run: async ({ before }) => (await before?.rows())?.map((row) => ({ id: row.idd })) ?? [],
})

// @ts-expect-error 35 not a dimension of the upstream partitions
asset('cube', { partitions: multi({ day, city }), run: () => 1 }).offset(-1, 'country')

// @ts-expect-error 36 what is made in ranges keeps its own data
asset('in-ranges', { partitions: ranges(day), run: () => 1 })

// @ts-expect-error 37 JSON cannot hold a Date
asset('dated', { run: () => ({ rows: [{ at: new Date() }] }) })

// @ts-expect-error 38 nor a Map
asset('mapped', { run: async () => new Map([['a', 1]]) })

// @ts-expect-error 39 nor a Set in an object
asset('set', { run: () => ({ seen: new Set<string>() }) })

// @ts-expect-error 40 nor a big integer
asset('big', { run: () => [1n] })

// @ts-expect-error 41 nor what is undefined, unless the member is optional
asset('undefined', { run: (): { total: number | undefined } => ({ total: undefined }) })

class Money {
  readonly cents = 1
  toString(): string {
    return `${this.cents}`
  }
}
// @ts-expect-error 42 nor an object that a class made, with its methods
asset('instance', { run: () => ({ price: new Money() }) })

// @ts-expect-error 43 nor bytes
asset('bytes', { run: () => new Uint8Array(3) })

const scores = command('scores', { run: ['x'], output: 'rows.csv', schema: id })
table('from-scores', {
  schema: id,
  inputs: { scores },
  // @ts-expect-error 44 no such column in the rows that a program hands back
  run: async ({ scores }) => (await scores.rows()).map((row) => ({ id: row.idd })),
})

// @ts-expect-error 45 rows need a schema
command('no-schema', { run: ['x'], output: 'rows.csv' })

// @ts-expect-error 46 and a file
command('no-file', { run: ['x'], schema: id })

// @ts-expect-error 47 of a format that can be read
command('sheet', { run: ['x'], output: 'rows.xlsx', schema: id })

// @ts-expect-error 48 no such column to check
command('checked', { run: ['x'], output: 'rows.csv', schema: id, checks: { u: check.unique('idd') } })

// @ts-expect-error 49 checks need rows
command('own-data', { run: ['x'], checks: { u: () => true } })

// @ts-expect-error 50 the input keeps its own data
command('from-command', { run: ['x'], inputs: { forecast } })

interface Tree {
  name: string
  parent?: string
  children: readonly Tree[]
  size: [number, number] | null
  kind: 'leaf' | 'branch'
}
/** The last words of the compiler in mistake 37. */
export const because: NotJson<{ rows: { at: Date }[] }> = 'value.rows[].at is a Date: return its toISOString()'

declare const tree: Tree
declare const anything: unknown
export const kept = [
  asset('tree', { run: async (): Promise<Tree> => tree }),
  asset('anything', { run: () => anything }),
  asset('record', { run: (): Record<string, { n: number }[]> => ({}) }),
  asset('nothing', { run: async () => {} }),
  asset('sometimes', { run: () => (Math.random() > 2 ? undefined : { n: 1 }) }),
  asset('by-io', { run: () => new Date(), io: io('date', { write: (at: Date) => at.toISOString(), read: () => new Date() }) }),
]
