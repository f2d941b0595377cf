import { describe, expect, test } from 'vitest'
import { type AssetDefinitionInput, assetDefinition } from '../../contract/project-manifest.ts'
import { AssetGraph } from '../assets/graph.ts'
import { GraphMappings } from '../assets/graph-mappings.ts'
import { GraphPartitions } from '../assets/graph-partitions.ts'
import { planRun } from './plan.ts'

type Dependency = string | { asset_key: string; mapping: { type: string } & Record<string, unknown> }

const define = (key: string, partitions: AssetDefinitionInput['partitions'], deps: readonly Dependency[] = []) =>
  assetDefinition.parse({
    asset_key: key,
    kind: 'asset',
    partitions,
    deps: deps.map((of) => (typeof of === 'string' ? { asset_key: of } : of)),
  })

const daily = { type: 'daily', start: '2025-01-01', timezone: 'UTC' }
const monthly = { type: 'monthly', start: '2025-01', timezone: 'UTC' }
const region = { type: 'keys', keys: ['eu', 'us'] }
const product = { type: 'keys', keys: ['book', 'pen'] }
const cube = { type: 'multi', dimensions: { date: daily, region, product } }

/** When January and February 2025 have closed, and the first day of March. */
const nowMs = Date.UTC(2025, 2, 2)

/** What each task waits for, or why there is no plan. */
function plan(
  definitions: readonly ReturnType<typeof define>[],
  asset_selection: readonly string[],
  partition_selection: readonly string[] | null = null,
  dynamic: readonly string[] = [],
) {
  const graph = new AssetGraph(definitions)
  const partitions = new GraphPartitions(new GraphMappings(graph), { nowMs, dynamicKeys: () => dynamic })
  const run = { run_id: 'run_1', priority: 0, asset_selection, partition_selection }
  const planned = planRun({ run, graph, graphVersion: 'g', partitions })
  if ('error' in planned) return planned.error
  return Object.fromEntries(planned.events.flatMap(({ tasks }) => tasks.map((task) => [task.task_key, task.depends_on])))
}

describe('partitions asked for once, for assets that are made in other parts', () => {
  const sales = [define('orders', daily), define('revenue', monthly, ['orders'])]

  test('[P5] are the days that a month is made of', () => {
    const tasks = plan(sales, ['*'], ['2025-02']) as Record<string, string[]>
    expect(Object.keys(tasks)).toHaveLength(29)
    expect(tasks['revenue[2025-02]']).toHaveLength(28)
    expect(tasks['revenue[2025-02]']?.[0]).toBe('orders[2025-02-01]')
  })

  test('[P5] are the month that a day is part of, which waits for those days only that the run makes', () => {
    expect(plan(sales, ['*'], ['2025-01-30..2025-02-01'])).toEqual({
      'orders[2025-01-30]': [],
      'orders[2025-01-31]': [],
      'orders[2025-02-01]': [],
      'revenue[2025-01]': ['orders[2025-01-30]', 'orders[2025-01-31]'],
      'revenue[2025-02]': ['orders[2025-02-01]'],
    })
  })

  test('can be ranges with an open end, or all there are', () => {
    const days = (asked: string) => Object.keys(plan(sales, ['orders'], [asked]) as object).length
    expect([days('2025-02-27..'), days('..2025-01-03'), days('*')]).toEqual([3, 3, 60])
  })

  test('are products of dimensions, taken whole where nothing is said', () => {
    const cubes = [define('cube', cube), define('month', monthly, ['cube'])]
    const tasks = plan(cubes, ['*'], ['date=2025-01-01..2025-01-02,region=eu']) as Record<string, string[]>
    expect(Object.keys(tasks)).toEqual([
      'cube[date=2025-01-01,product=book,region=eu]',
      'cube[date=2025-01-01,product=pen,region=eu]',
      'cube[date=2025-01-02,product=book,region=eu]',
      'cube[date=2025-01-02,product=pen,region=eu]',
      'month[2025-01]',
    ])
    expect(tasks['month[2025-01]']).toHaveLength(4)
  })

  test('[P2] of a key written in another order are the same partition', () => {
    const cubes = [define('cube', cube)]
    expect(Object.keys(plan(cubes, ['*'], ['region=eu,product=pen,date=2025-01-05']) as object)).toEqual([
      'cube[date=2025-01-05,product=pen,region=eu]',
    ])
  })

  test('that come and go are those that are there', () => {
    const customers = [define('mail', { type: 'dynamic', name: 'customers' })]
    expect(plan(customers, ['*'], ['*'], ['ada', 'bob'])).toEqual({ 'mail[ada]': [], 'mail[bob]': [] })
    expect(plan(customers, ['*'], ['eve'], ['ada', 'bob'])).toMatch(/^mail has no partition eve; .*ada/s)
  })
})

describe('an asset that is made from its own past', () => {
  const previous = { type: 'time_window', start_offset: -1, end_offset: -1 }
  const stock = [define('stock', daily, [{ asset_key: 'stock', mapping: previous }])]

  test('[P4] is made one window after the other, and the first waits for nothing', () => {
    expect(plan(stock, ['*'], ['2025-01-01..2025-01-03'])).toEqual({
      'stock[2025-01-01]': [],
      'stock[2025-01-02]': ['stock[2025-01-01]'],
      'stock[2025-01-03]': ['stock[2025-01-02]'],
    })
  })
})

describe('an asset that is made in ranges', () => {
  const inRanges = (key: string, at_most?: number, deps: readonly Dependency[] = []) => ({
    ...define(key, daily, deps),
    ranges: at_most === undefined ? {} : { at_most },
  })
  const asked = ['2025-01-01..2025-01-03', '2025-01-05']

  test('[P15] has one task for each range of neighbours, which waits for all that they are made from', () => {
    expect(plan([define('orders', daily), inRanges('loaded', undefined, ['orders'])], ['*'], asked)).toEqual({
      'orders[2025-01-01]': [],
      'orders[2025-01-02]': [],
      'orders[2025-01-03]': [],
      'orders[2025-01-05]': [],
      'loaded[2025-01-01..2025-01-03]': ['orders[2025-01-01]', 'orders[2025-01-02]', 'orders[2025-01-03]'],
      'loaded[2025-01-05]': ['orders[2025-01-05]'],
    })
  })

  test('[P15] is waited for by whatever is made from any of its partitions', () => {
    const graph = [inRanges('loaded', 2), define('daily', daily, ['loaded']), define('monthly', monthly, ['loaded'])]
    expect(plan(graph, ['*'], asked)).toMatchObject({
      'daily[2025-01-02]': ['loaded[2025-01-01..2025-01-02]'],
      'daily[2025-01-03]': ['loaded[2025-01-03]'],
      'monthly[2025-01]': ['loaded[2025-01-01..2025-01-02]', 'loaded[2025-01-03]', 'loaded[2025-01-05]'],
    })
  })

  test('and from its own past has ranges that follow each other, none of which waits for itself', () => {
    const before = { asset_key: 'loaded', mapping: { type: 'time_window', start_offset: -1, end_offset: -1 } }
    expect(plan([inRanges('loaded', 2, [before])], ['*'], asked)).toEqual({
      'loaded[2025-01-01..2025-01-02]': [],
      'loaded[2025-01-03]': ['loaded[2025-01-01..2025-01-02]'],
      'loaded[2025-01-05]': [],
    })
  })

  test('is asked for again by the names of its tasks', () => {
    expect(plan([inRanges('loaded')], ['loaded[2025-01-01..2025-01-03]'])).toEqual({ 'loaded[2025-01-01..2025-01-03]': [] })
  })
})

test('[P5] `latest` leaves out what has no windows, and makes what has no partitions', () => {
  const graph = [define('orders', daily), define('markets', region), define('whole', null), define('sums', region, ['markets'])]
  expect(plan(graph, ['*'], ['latest'])).toEqual({ 'orders[2025-03-01]': [], whole: [] })
  expect(plan(graph, ['markets', 'sums'], ['latest'])).toBe(
    'markets has no time partitions, so `latest` does not apply to it\nName a key, or * for all.',
  )
  expect(plan(graph, ['markets[latest]'])).toMatch(/^markets has no time partitions, so `latest` does not apply to it\n/)
})

describe('[P4][P5] what cannot be planned says what to do', () => {
  const orders = define('orders', daily)

  test.each<[string, ReturnType<typeof define>[], string[] | null, RegExp]>([
    ['no partition', [orders], null, /^orders has partitions \(2025-01-01 to 2025-03-01\), but the request names none\nName/],
    [
      'no partition of time windows, of which one is the latest',
      [orders],
      null,
      /\nName them: --partition 2025-03-01, --partition latest, or a range such as --partition 2025-02-27\.\.2025-03-01$/,
    ],
    [
      'no partition of a list of keys',
      [define('markets', region)],
      null,
      /\nName them: --partition \w+, or a range such as --partition \w+\.\.\w+$/,
    ],
    ['a window that has not closed', [orders], ['2025-03-02'], /orders: .*2025-03-02 does not exist before 2025-03-03/],
    [
      'a window before the first',
      [orders],
      ['2024-12-31'],
      /orders has no partition 2024-12-31; its partitions run from 2025-01-01 to/,
    ],
    ['a key of another kind', [orders], ['eu'], /orders has no partition eu; its/],
    [
      'a range the wrong way round',
      [orders],
      ['2025-01-03..2025-01-01'],
      /the range is reversed: 2025-01-03 comes after 2025-01-01\nSwap them: 2025-01-01\.\.2025-01-03/,
    ],
    [
      'an asset that has nothing to do with the partitions asked for',
      [orders, define('markets', region)],
      ['2025-01-01'],
      /^no partition of markets maps to 2025-01-01\nRun markets by itself/,
    ],
    [
      'windows in two zones',
      [orders, define('revenue', { ...monthly, timezone: 'Asia/Tokyo' }, ['orders'])],
      ['2025-01-01'],
      /revenue has no mapping to the partitions of orders\n.*Asia\/Tokyo and in UTC begin at different times/,
    ],
    [
      'upstream windows that do not exist',
      [orders, define('revenue', { ...monthly, start: '2024-12' }, ['orders'])],
      ['2024-12'],
      /^revenue\[2024-12\] needs orders\[2024-12-01\] and 30 more, which does not exist/,
    ],
    ['partitions that no version of Servo wrote', [define('odd', { type: 'lunar' })], ['x'], /^the partitions of odd: .*type/],
  ])('%s', (_, definitions, asked, error) => {
    expect(plan(definitions, ['*'], asked)).toMatch(error)
  })
})
