import fs from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { TestProject } from './support/project.ts'
import type { Servo } from './support/servo.ts'
import { until } from './support/until.ts'

const ASSETS = `import { existsSync } from 'node:fs'
import { asset, command, daily, keys, monthly, multi, previous, ranges, table } from 'servo-flow'
import { z } from 'zod'

const date = daily({ start: '2025-01-01' })
const cube = multi({ date, region: keys(['eu', 'us']), product: keys(['book', 'pen']) })
const Sale = z.object({ date: z.string(), region: z.string(), product: z.string(), amount: z.number() })

export const sales = table('sales', {
  partitions: cube,
  schema: Sale,
  run({ partition }) {
    const { date, region, product } = partition.key
    if (existsSync('broken') && region === 'us') throw new Error('the us shop is closed')
    return [{ date, region, product, amount: Number(date.slice(-2)) + Number(existsSync('dearer')) }]
  },
})

export const revenue = asset('revenue', {
  partitions: monthly({ start: '2025-01' }),
  inputs: { sales },
  async run({ sales }) {
    const rows = await sales.rows()
    return { rows: rows.length, total: rows.reduce((sum, { amount }) => sum + amount, 0) }
  },
})

export const target = asset('target', { partitions: keys(['eu', 'us']), run: ({ partition }) => partition.key })
export const numbers = asset('numbers', { partitions: date, run: ({ partition }) => Number(partition.key.slice(-2)) })
export const growth = asset('growth', {
  partitions: date,
  inputs: { today: numbers, yesterday: numbers.offset(-1) },
  run: ({ today, yesterday }) => today - yesterday,
})
export const byDay = asset('by-day', {
  partitions: monthly({ start: '2025-01' }),
  inputs: { numbers },
  run: ({ numbers }) => [...numbers].map(([day, value]) => day + ':' + value),
})
export const sums = asset('sums', {
  partitions: date,
  inputs: { numbers, before: previous<number>() },
  run: ({ numbers, before = 0 }) => before + numbers,
})
export const log = command('log', {
  partitions: date,
  deps: [previous()],
  run: ['sh', '-c', 'echo $0 >> log.txt', ({ key }) => key],
})
export const loaded = command('loaded', {
  partitions: ranges(date, { atMost: 20 }),
  deps: [numbers],
  run: ['node', 'load.mjs', ({ key, keys, window }) => [key, keys.length, window.end.toISOString()].join(' ')],
})
export const counted = asset('counted', {
  partitions: ranges(date),
  inputs: { numbers, before: numbers.offset(-1) },
  run({ numbers, before, metadata }) {
    if (existsSync('broken')) throw new Error('out of order')
    metadata({ numbers: numbers.size, before: before.size })
  },
})
export const words = asset('words', {
  partitions: keys(['first', 'both']),
  inputs: {
    week: numbers.at(['2025-01-01', '2025-01-02']),
    newest: target.last(),
    targets: target.map({ first: 'eu', both: ['eu', 'us'] }),
  },
  run: ({ week, newest, targets }) => ({ week: [...week.values()], newest, targets: [...targets] }),
})
`

/** Writes down what it was told: as a word of the command line, and by Pipes. */
const LOAD = `import fs from 'node:fs'
import zlib from 'node:zlib'
const { data } = JSON.parse(zlib.inflateSync(Buffer.from(process.env.DAGSTER_PIPES_CONTEXT, 'base64')))
const { partition_key, partition_key_range: range, partition_time_window: time } = data
fs.appendFileSync('loaded.txt', [process.argv[2], partition_key, range.start, range.end, time.end].join(' ') + '\\n')
`

describe('partitions', () => {
  let project: TestProject
  let dev: Servo

  beforeAll(async () => {
    project = new TestProject({ 'assets/shop.ts': ASSETS, 'load.mjs': LOAD })
    dev = await project.dev()
  })

  afterAll(() => project.end())

  test('servo dev says how to run what has partitions', async () => {
    await dev.says(/servo run "\*" --partition <key> runs everything for a partition\n/)
  })

  /** Rows of the published tables, as soon as there are so many: they are written a moment after what they tell. */
  async function rowsOf(sql: string, count: number): Promise<Record<string, unknown>[]> {
    let rows: Record<string, unknown>[] = []
    await until(async () => {
      rows = await project.query(sql)
      return rows.length === count
    }, `${count} rows of ${sql}`)
    return rows
  }

  /** The value of a partition as it is on record. */
  async function valueOn(asset: string, partition: string): Promise<unknown> {
    const [row] = await rowsOf(
      `SELECT value AS text FROM stored_values WHERE asset_key = '${asset}' AND partition_key = '${partition}'`,
      1,
    )
    return JSON.parse(String(row?.['text']))
  }

  test('of three dimensions feed an asset of months, and each task waits for what it is made from', async () => {
    const ran = await project.servo('run', 'sales', 'revenue', '--partition', '2025-01')
    expect(ran).toMatchObject({ code: 0 })
    const [run] = await project.json('runs', 'list')
    // 31 days × 2 regions × 2 products, and the month.
    expect(run).toMatchObject({ state: 'SUCCEEDED', tasks_total: 125 })
    // Every day of January four times: 4 × (1 + … + 31).
    expect(await valueOn('revenue', '2025-01')).toEqual({ rows: 124, total: 1_984 })
  })

  test('[P10] that fail leave the last materialization as it was', async () => {
    project.write('broken')
    const ran = await project.servo('run', 'sales', '--partition', 'date=2025-01-05,region=us')
    expect(ran.code).not.toBe(0)
    project.remove('broken')
    const rows = await rowsOf(
      `SELECT partition_key, last_attempt_outcome, last_materialization_id IS NOT NULL AS made FROM partition_status
       WHERE asset_key = 'sales' AND last_attempt_outcome = 'FAILED' ORDER BY partition_key`,
      2,
    )
    expect(rows).toEqual([
      { partition_key: 'date=2025-01-05,product=book,region=us', last_attempt_outcome: 'FAILED', made: true },
      { partition_key: 'date=2025-01-05,product=pen,region=us', last_attempt_outcome: 'FAILED', made: true },
    ])
  })

  /** The keys of the pages of `servo partitions …`, as `asset[partition]`. */
  async function named(...words: string[]): Promise<string[]> {
    const { partitions } = await project.json('partitions', ...words)
    return partitions.map((each: Record<string, string>) => `${each['asset_key']}[${each['partition_key']}]`)
  }

  test('[P11][P16] that fail mark exactly what is made from them, and what is made again what has to follow', async () => {
    // The failed attempts of the test before took nothing away, so nothing below is stale.
    const failed = ['--status', 'failed', '--oldest']
    expect(await named('list', 'sales', ...failed)).toEqual([
      'sales[date=2025-01-05,product=book,region=us]',
      'sales[date=2025-01-05,product=pen,region=us]',
    ])
    expect(await named('list', 'revenue', '--status', 'materialized')).toEqual(['revenue[2025-01]'])
    expect(await named('stale', '--cause', 'upstream_changed')).toEqual([])

    const again = async (): Promise<void> => {
      const ran = await project.servo('run', 'sales', '--partition', 'date=2025-01-07,product=pen,region=eu')
      expect(ran).toMatchObject({ code: 0 })
    }
    // The same rows are no change.
    await again()
    expect(await named('stale', '--cause', 'upstream_changed')).toEqual([])
    project.write('dearer')
    await again()
    expect(await named('stale', '--cause', 'upstream_changed')).toEqual(['revenue[2025-01]'])
    const why = await project.json('partitions', 'why', 'revenue', '2025-01')
    expect(why).toMatchObject({
      status: 'STALE',
      because: [{ cause: 'upstream_changed', path: ['sales[date=2025-01-07,product=pen,region=eu]', 'revenue[2025-01]'] }],
    })

    project.write('broken')
    const ran = await project.servo('run', 'sales', 'revenue', '--partition', '2025-02')
    expect(ran.code).not.toBe(0)
    project.remove('broken')
    const [february] = (await project.json('partitions', 'list', 'revenue', '--partition', '2025-02')).partitions
    expect(february).toMatchObject({ status: 'NEVER_MATERIALIZED', causes: ['never_materialized', 'upstream_missing'] })
    // Two regions, two products: half of each day failed, and counts as failed although it was never made.
    const { stdout: counts } = await project.servo('partitions', 'status', 'sales', 'revenue')
    expect(counts.trim().split('\n')).toHaveLength(3)
    const [, all, made, stale, failures, never] = /^sales +([\d,]+) +(\d+) +(\d+) +(\d+) +([\d,]+)/m.exec(counts) ?? []
    const number = (text: string | undefined): number => Number(text?.replaceAll(',', ''))
    expect([made, stale, failures]).toEqual(['178', '0', '58'])
    expect(number(never)).toBe(number(all) - 178 - 58)
    const page = await project.servo('partitions', 'list', 'sales', '--partition', 'date=2025-02-01,product=pen')
    expect(page.stdout).toMatch(/region=us +missing, last attempt failed/)
    const { because } = await project.json('partitions', 'why', 'revenue', '2025-02')
    // 28 days × 2 products of the region that is closed.
    const missing = because.find(({ cause }: Record<string, string>) => cause === 'upstream_missing')
    expect(missing.upstream).toMatchObject({ asset_key: 'sales', count: 56 })
    // January knows nothing of it.
    expect((await project.json('partitions', 'why', 'revenue', '2025-01')).because).toEqual(why.because)
    // What it was before is what was read.
    project.remove('dearer')
    await again()
    expect(await named('list', 'revenue', '--status', 'materialized')).toEqual(['revenue[2025-01]'])
  })

  test('have the same status without a server', async () => {
    const before = await project.json('partitions', 'status')
    dev.kill('SIGKILL')
    await dev.ended
    expect(await project.json('partitions', 'status')).toEqual(before)
    dev = await project.dev()
  })

  test('of yesterday and of a whole month are loaded as inputs', async () => {
    const ran = await project.servo('run', 'numbers', '--partition', '2025-01-01..2025-01-31')
    expect(ran).toMatchObject({ code: 0 })
    expect(await project.servo('run', 'growth', '--partition', '2025-01-02..2025-01-03')).toMatchObject({ code: 0 })
    expect(await project.servo('run', 'by-day', '--partition', '2025-01')).toMatchObject({ code: 0 })
    expect(await valueOn('growth', '2025-01-03')).toBe(1)
    const days = (await valueOn('by-day', '2025-01')) as string[]
    expect([days.length, days.at(-1)]).toEqual([31, '2025-01-31:31'])
  })

  test('of its own past feed an asset, window after window, and before the first there is none', async () => {
    expect(await project.servo('run', 'sums', '--partition', '2025-01-01..2025-01-04')).toMatchObject({ code: 0 })
    expect(await valueOn('sums', '2025-01-04')).toBe(10)
    expect(await project.servo('run', 'log', '--partition', '2025-01-01..2025-01-03')).toMatchObject({ code: 0 })
    expect(fs.readFileSync(project.file('log.txt'), 'utf8')).toBe('2025-01-01\n2025-01-02\n2025-01-03\n')
    const tooFar = await project.servo('run', 'sums', '--partition', '2025-01-06')
    expect(tooFar.code).not.toBe(0)
    expect(tooFar.stdout + tooFar.stderr).toMatch(/sums\[2025-01-06\] needs sums\[2025-01-05\].*never materialized/)
  })

  test('[P15] that are made in ranges are one task each, and every partition has its status', async () => {
    const ran = await project.servo('run', 'loaded', '--partition', '2025-01-01..2025-01-31')
    expect(ran).toMatchObject({ code: 0 })
    expect(fs.readFileSync(project.file('loaded.txt'), 'utf8').split('\n').sort()).toEqual([
      '',
      '2025-01-01..2025-01-20 20 2025-01-21T00:00:00.000Z  2025-01-01 2025-01-20 2025-01-21T00:00:00+00:00',
      '2025-01-21..2025-01-31 11 2025-02-01T00:00:00.000Z  2025-01-21 2025-01-31 2025-02-01T00:00:00+00:00',
    ])
    const rows = await rowsOf(
      "SELECT DISTINCT last_materialization_id FROM partition_status WHERE asset_key = 'loaded' AND last_attempt_outcome = 'SUCCEEDED'",
      2,
    )
    expect(rows).toHaveLength(2)
    await rowsOf("SELECT partition_key FROM partition_status WHERE asset_key = 'loaded'", 31)
  })

  test('that are made in ranges get the inputs of all of them, and a rerun asks for the same range', async () => {
    project.write('broken')
    const failed = await project.servo('run', 'counted', '--partition', '2025-01-02..2025-01-31')
    expect(failed.code).not.toBe(0)
    project.remove('broken')
    const [run] = await project.json('runs', 'list')
    expect(await project.servo('runs', 'rerun', run?.['run_id'] as string)).toMatchObject({ code: 0 })
    const [attempt] = await rowsOf(
      `SELECT task_key, output FROM task_attempts WHERE task_key LIKE 'counted%' AND outcome = 'SUCCEEDED'`,
      1,
    )
    expect(attempt).toMatchObject({ task_key: 'counted[2025-01-02..2025-01-31]' })
    expect(JSON.stringify(attempt?.['output'])).toMatch(/"before\W+30\D.*"numbers\W+30\D/)
  })

  test('of other assets are loaded as their words say', async () => {
    expect(await project.servo('run', 'target', '--partition', '*')).toMatchObject({ code: 0 })
    expect(await project.servo('run', 'words', '--partition', '*')).toMatchObject({ code: 0 })
    const expected = { week: [1, 2], newest: 'us' }
    expect(await valueOn('words', 'first')).toEqual({ ...expected, targets: [['eu', 'eu']] })
    expect(await valueOn('words', 'both')).toEqual({
      ...expected,
      targets: [
        ['eu', 'eu'],
        ['us', 'us'],
      ],
    })
  })

  test.each([
    ['not named', ['run', 'numbers'], /numbers has partitions \(2025-01-01 to .*\), but the request names none/],
    [
      'that do not exist',
      ['run', 'numbers', '--partition', '2024-12-31'],
      /has no partition 2024-12-31; its partitions run from 2025-01-01/,
    ],
    ['of another definition', ['run', 'numbers', '--partition', 'eu'], /numbers has no partition eu;/],
    [
      'of a range the wrong way round',
      ['run', 'numbers', '--partition', '2025-02-01..2025-01-01'],
      /2025-02-01 comes after 2025-01-01\n.*Swap them: 2025-01-01\.\.2025-02-01/,
    ],
    ['in the future', ['run', 'numbers', '--partition', '2150-01-01'], /does not exist before/],
  ])('[P4] %s are refused before anything runs', async (_, args, says) => {
    const { code, stderr } = await project.servo(...args)
    expect(code).not.toBe(0)
    expect(stderr).toMatch(says)
  })
})
