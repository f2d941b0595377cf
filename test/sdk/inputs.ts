// What code gets for an input, by the compiler: each line fails the type check when it is something else.
import {
  asset,
  command,
  cronWindows,
  type DataTable,
  daily,
  hourly,
  keys,
  minutely,
  monthly,
  multi,
  previous,
  ranges,
  source,
  table,
  weekly,
} from 'servo-flow'
import { z } from 'zod'

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
const is = <Expected>() => ({ exactly: <Given>(_: Given, ..._wrong: Same<Given, Expected> extends true ? [] : [Given]) => 1 })

const day = daily({ start: '2025-01-01' })
const region = keys(['eu', 'us'])
const city = keys(['berlin', 'boston'])
const cube = multi({ day, region })
type Day = `${number}-${number}-${number}`

const plain = asset('plain', { run: () => 1 })
const sold = asset('sold', { partitions: day, run: () => 1 })
const perRegion = asset('per-region', { partitions: region, run: () => 1 })
const perCube = asset('per-cube', { partitions: cube, run: () => 1 })
const perMinute = asset('per-minute', { partitions: minutely({ start: '2025-01-01T00:00', every: 5 }), run: () => 1 })
const perShift = asset('per-shift', { partitions: cronWindows('0 6 * * *', { start: '2025-01-01T06:00' }), run: () => 1 })
const rows = source('rows', { partitions: cube, schema: z.object({ id: z.string() }), uri: 'rows/*.parquet' })

const scores = command('scores', {
  run: ['x'],
  partitions: day,
  inputs: { sold },
  output: 'rows.csv',
  schema: z.object({ id: z.string() }),
})
table('of-scores', {
  inputs: { scores: scores.all() },
  schema: z.object({ id: z.string() }),
  run: async ({ scores }) => [{ id: String(is<DataTable<{ id: string }>>().exactly(scores)) }],
})
asset('same', { partitions: day, inputs: { sold, plain }, run: ({ sold, plain }) => is<number>().exactly(sold) + plain })
asset('whole', { inputs: { sold }, run: ({ sold }) => is<ReadonlyMap<Day, number>>().exactly(sold) })
asset('month', {
  partitions: monthly({ start: '2025-01' }),
  inputs: { sold, before: sold.offset(-1) },
  run: ({ sold, before }) => is<ReadonlyMap<Day, number>>().exactly(sold) + is<ReadonlyMap<Day, number>>().exactly(before),
})
asset('hour', {
  partitions: hourly({ start: '2025-01-01T00' }),
  inputs: { sold },
  run: ({ sold }) => is<number>().exactly(sold),
})
asset('week', {
  partitions: weekly({ start: '2025-01-06' }),
  inputs: { month: asset('m', { partitions: monthly({ start: '2025-01' }), run: () => 1 }) },
  run: ({ month }) => is<ReadonlyMap<`${number}-${number}`, number>>().exactly(month),
})
asset('quarter-hour', {
  partitions: minutely({ start: '2025-01-01T00:00', every: 15 }),
  inputs: { perMinute },
  run: ({ perMinute }) => perMinute.size,
})
asset('shift', { partitions: perShiftWindows(), inputs: { perShift }, run: ({ perShift }) => is<number>().exactly(perShift) })
// Nobody knows which of the two is longer.
asset('unknown', {
  partitions: day,
  inputs: { perShift },
  run: ({ perShift }) => is<number | ReadonlyMap<string, number>>().exactly(perShift),
})
asset('one-of-several', {
  partitions: cube,
  inputs: { sold, perRegion, perCube },
  run: ({ sold, perRegion, perCube }) => sold + perRegion + perCube,
})
asset('words', {
  partitions: city,
  inputs: {
    last: sold.last(),
    week: perCube.window({ from: -6, to: 0 }),
    one: sold.at('2025-01-01'),
    some: sold.at(['2025-01-01']),
    region: perRegion.map({ berlin: 'eu', boston: 'us' }),
    regions: perRegion.map({ berlin: ['eu'], boston: 'us' }),
    byRegion: perCube.all('region'),
    all: perCube.all(),
    rows,
  },
  run: ({ last, week, one, some, region, regions, byRegion, all, rows }) => [
    is<number>().exactly(last),
    is<ReadonlyMap<string, number>>().exactly(week),
    is<number>().exactly(one),
    is<ReadonlyMap<Day, number>>().exactly(some),
    is<number>().exactly(region),
    is<ReadonlyMap<'eu' | 'us', number>>().exactly(regions),
    is<ReadonlyMap<'eu' | 'us', number>>().exactly(byRegion),
    is<ReadonlyMap<string, number>>().exactly(all),
    is<DataTable<{ id: string }>>().exactly(rows),
  ],
})
asset('in-ranges', {
  partitions: ranges(cube),
  inputs: { sold, perRegion: perRegion.map({ eu: 'eu' }), last: sold.last() },
  run({ partition, sold, perRegion, last }) {
    is<string>().exactly(partition.key)
    is<readonly { day: Day; region: 'eu' | 'us' }[]>().exactly(partition.keys)
    is<Date>().exactly(partition.window.day.end)
    is<ReadonlyMap<Day, number>>().exactly(sold)
    is<ReadonlyMap<'eu' | 'us', number>>().exactly(perRegion)
    is<number>().exactly(last)
  },
})
command('program-of-ranges', {
  partitions: ranges(day),
  run: ['load', ({ keys }) => `${is<readonly Day[]>().exactly(keys)}`],
})
asset('stock', {
  partitions: day,
  inputs: { sold, before: previous<number>() },
  run: ({ sold, before }) => (before ?? 100) - sold,
})
table('balance', {
  partitions: cube,
  schema: z.object({ id: z.string() }),
  inputs: { before: previous() },
  async run({ before }) {
    is<DataTable<{ id: string }> | undefined>().exactly(before)
    return before ?? []
  },
})

function perShiftWindows() {
  return cronWindows('0 6 * * *', { start: '2025-06-01T06:00' })
}
