import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { TestProject } from '../support/project.ts'

const SHOP = `import { asset, daily, dynamic, keys, monthly, multi, previous } from 'servo-flow'
const day = daily({ start: '2025-01-01', end: '2025-04-01' })
export const raw = asset('raw', { partitions: day, run: () => 1 })
export const clean = asset('clean', { partitions: day, inputs: { raw }, run: () => 1 })
export const month = asset('month', { partitions: monthly({ start: '2025-01', end: '2025-04' }), inputs: { clean }, run: () => 1 })
export const sales = asset('sales', { partitions: multi({ day, region: keys(['eu', 'us', 'apac']) }), run: () => 1 })
export const stock = asset('stock', { partitions: day, inputs: { before: previous<number>() }, run: () => 1 })
export const customers = asset('customers', { partitions: dynamic('customers'), run: () => 1 })
`

describe('servo backfills', () => {
  let project: TestProject
  beforeAll(async () => {
    project = new TestProject({ 'assets/a.ts': SHOP })
    await project.dev()
  })
  afterAll(() => project.end())

  const preview = (...args: string[]) => project.asked('backfills', 'preview', ...args)

  test.each([
    ['one key of two dimensions', ['day=2025-01-01,region=eu'], 1],
    ['the same twice', ['day=2025-01-01,region=eu', 'day=2025-01-02,region=us'], 2],
    ['a dimension alone, which takes the other whole', ['day=2025-01-01'], 3],
  ])('--partitions takes %s', async (_, given, count) => {
    const answer = await preview('sales', ...given.flatMap((key) => ['--partitions', key]))
    expect([answer.code, answer.stderr]).toEqual([0, ''])
    expect(answer.stdout).toMatch(new RegExp(`^${count} partitions? in 1 run\n[^]*first: day=2025-01-01,region=`))
  })

  test('--partitions takes keys of one dimension with commas between them', async () => {
    expect((await preview('raw', '--partitions', '2025-01-01,2025-01-15')).stdout).toContain('2 partitions in 1 run')
  })

  test.each([
    [
      'a dimension that is filtered twice',
      ['sales', '--filter', 'region=eu', '--filter', 'region=us'],
      `--filter region=… is given twice`,
      'servo backfills … --partitions region=eu --partitions region=us',
    ],
    ['a filter without a dimension', ['sales', '--filter', 'eu'], `invalid value 'eu' for --filter`, `--filter 'region=eu-*'`],
    ['a filter that matches nothing', ['sales', '--filter', 'region=mars-*'], 'no partition of sales matches', 'pattern'],
    [
      'the newest first where each needs the one before',
      ['stock', '--all', '--newest-first'],
      'stock is made from its own past',
      'Leave out --newest-first.',
    ],
    [
      'an asset that is not related',
      ['raw', 'month', '--start', '2025-01-01', '--end', '2025-01-31'],
      'month is partitioned differently',
      'Select clean too, or create a backfill of month by itself.',
    ],
    [
      'a state of partitions that are named',
      ['raw', '--only', 'stale', '--partitions', '2025-01-01'],
      '--only stale and --partitions cannot be combined',
      '--start and --end',
    ],
  ])('%s is refused, with what to do', async (_, args, why, hint) => {
    const answer = await preview(...args)
    expect([answer.code, answer.stderr]).toEqual([2, expect.stringContaining(why)])
    expect(answer.stderr).toContain(hint)
  })

  test('what is left out and why there is nothing to do are said in words', async () => {
    const empty = await preview('customers', '--all')
    expect([empty.code, empty.stdout]).toEqual([0, 'nothing to do: customers has no partitions\n'])
    const part = await preview('raw', 'clean', 'month', '--filter', 'partition=2025-01-0*')
    expect(part.stdout).toContain('left out: month, no partition matches\n')
    const made = await project.servo(
      'backfills',
      'create',
      'raw',
      'clean',
      '--end',
      '2025-01-02',
      '--start',
      '2025-01-01',
      '--wait',
    )
    expect(made.code, made.stderr).toBe(0)
    const within = ['--start', '2025-01-01', '--end', '2025-01-02']
    const nothing = await preview('raw', 'clean', ...within, '--only', 'missing')
    expect([nothing.code, nothing.stdout]).toEqual([0, 'nothing to do: nothing is missing in any of the 2 assets\n'])
    expect((await preview('raw', ...within, '--only', 'failed')).stdout).toBe('nothing to do: nothing has failed in raw\n')
    expect((await preview('raw', ...within, '--skip-existing')).stdout).toBe(
      'nothing to do: everything asked for exists already in raw\n',
    )
  })

  test('--only missing takes --filter and --partitions too', async () => {
    const made = await project.servo('backfills', 'create', 'raw', '--partitions', '2025-02-01', '--wait')
    expect(made.code, made.stderr).toBe(0)
    expect((await preview('raw', '--only', 'missing', '--filter', 'partition=2025-02-0*')).stdout).toContain('8 partitions in')
    expect((await preview('raw', '--only', 'missing', '--partitions', '2025-02-01,2025-02-02')).stdout).toContain(
      '1 partition in',
    )
  })
})
