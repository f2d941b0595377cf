// Partitions and what is made from which. Each expectation is a mistake: see mistakes.test.ts.
import { asset, daily, dynamic, hourly, keys, minutely, monthly, multi, previous, ranges, run, table } from 'servo-flow'
import { z } from 'zod'
import { orders } from '../shop/assets/orders.ts'
import { headline, revenue } from '../shop/assets/revenue.ts'

const plain = asset('plain', { run: () => 1 })
const day = daily({ start: '2025-01-01' })
const city = keys(['berlin', 'boston'])
const sold = asset('sold', { partitions: day, run: () => 1 })
const perRegion = asset('per-region', { partitions: keys(['eu', 'us']), run: () => 1 })

// @ts-expect-error no start
daily({ timezone: 'Europe/Paris' })

// @ts-expect-error a start that is a Date
daily({ start: new Date('2025-01-01') })

// @ts-expect-error a month as the start of days
daily({ start: '2025-01' })

// @ts-expect-error a day as the start of months
monthly({ start: '2025-01-01' })

// @ts-expect-error a moment as the start of hours
hourly({ start: '2025-01-01T00:00:00Z' })

// @ts-expect-error a misspelt zone option
daily({ start: '2025-01-01', timeZone: 'Europe/Paris' })

// @ts-expect-error a zone as an offset in hours
daily({ start: '2025-01-01', timezone: 1 })

// @ts-expect-error an interval in words
minutely({ start: '2025-01-01T00:00', every: '15m' })

// @ts-expect-error keys that are not a list
keys('eu', 'us')

// @ts-expect-error a number as a key
keys(['1', 2])

// @ts-expect-error a dynamic set without a name
dynamic()

// @ts-expect-error dimensions without names
multi([day, city])

// @ts-expect-error an asset as partitions
multi({ day, sold })

// @ts-expect-error text as partitions
asset('daily', { partitions: 'daily', run: () => 1 })

// @ts-expect-error the function that makes partitions
asset('daily', { partitions: daily, run: () => 1 })

// @ts-expect-error an unknown key
run(orders, { partition: { day: '2025-01-01', region: 'mars' } })

// @ts-expect-error a missing dimension
run(orders, { partition: { day: '2025-01-01' } })

// @ts-expect-error one key of several dimensions
run(orders, { partition: '2025-01-01' })

// @ts-expect-error no partition of a partitioned asset
run(revenue)

// @ts-expect-error a partition of an asset without partitions
run(plain, { partition: '2025-01-01' })

// @ts-expect-error a day in words
run(headline, { partition: 'yesterday' })

// @ts-expect-error an unknown dimension
orders.all('country')

asset('part', {
  partitions: keys(['a', 'b']),
  // @ts-expect-error a comparison with an unknown key
  run: ({ partition }) => (partition.key === 'c' ? 1 : 2),
})

// @ts-expect-error the partition of an asset without partitions
asset('nopart', { run: ({ partition }) => partition.key })

// @ts-expect-error the window of partitions without time
asset('timeless', { partitions: city, run: ({ partition }) => partition.window.start.getTime() })

// @ts-expect-error an offset in words
revenue.offset('yesterday')

// @ts-expect-error a window without its end
sold.window({ from: -6 })

// @ts-expect-error an unknown key of the upstream
perRegion.at('mars')

// @ts-expect-error unknown keys of the upstream
perRegion.at(['eu', 'mars'])

// @ts-expect-error a map to an unknown key
perRegion.map({ berlin: 'europe' })

// @ts-expect-error a map from an unknown key
asset('per-city', { partitions: city, inputs: { region: perRegion.map({ paris: 'eu' }) }, run: ({ region }) => region })

// @ts-expect-error seven windows as one value
asset('week', { partitions: day, inputs: { sold: sold.window({ from: -6, to: 0 }) }, run: ({ sold }) => sold + 1 })

// @ts-expect-error the days of a month as one value
asset('month', { partitions: monthly({ start: '2025-01' }), inputs: { sold }, run: ({ sold }) => sold + 1 })

// @ts-expect-error the first window has nothing before it
asset('stock', { partitions: day, inputs: { before: previous<number>() }, run: ({ before }) => before + 1 })

// @ts-expect-error a past of another type than the value
asset('stock', { partitions: day, inputs: { before: previous<string>() }, run: () => 1 })

// @ts-expect-error a past without a type
asset('stock', { partitions: day, inputs: { before: previous() }, run: () => 1 })

// @ts-expect-error the past of an asset that returns nothing
asset('kept', { partitions: day, inputs: { before: previous<number>() }, run: () => {} })

table('rows-before', {
  partitions: day,
  schema: z.object({ id: z.string() }),
  inputs: { before: previous() },
  // @ts-expect-error a misspelt column of its own rows
  run: async ({ before }) => (await before?.rows())?.map((row) => ({ id: row.idd })) ?? [],
})

// @ts-expect-error an unknown dimension to count along
asset('cube', { partitions: multi({ day, city }), run: () => 1 }).offset(-1, 'country')

// @ts-expect-error a value of an asset that is made in ranges
asset('in-ranges', { partitions: ranges(day), run: () => 1 })

/** These are right. */
export const written = [
  daily({ start: '01.01.2025', format: '%d.%m.%Y' }),
  minutely({ start: '2025-01-01 00.00', every: 5, format: '%Y-%m-%d %H.%M' }),
  daily({ start: '2025-01-01', hour: 6 }),
]
