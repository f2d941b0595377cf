import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { projectOf, TestProject } from './support/project.ts'

const ASSETS = `import { asset, daily, dynamic, keys, multi, source } from 'servo-flow'
import { z } from 'zod'

const customers = dynamic('customers')
const day = daily({ start: '2025-01-01' })

export const feed = source('raw/feed', {
  group: 'raw',
  description: 'What the shop sends',
  schema: z.object({ id: z.string() }),
  uri: 's3://shop/feed',
  partitions: multi({ day, region: keys(['eu', 'us']) }),
})
/** Finds out who the customers are. */
export const crm = asset('raw/crm', {
  group: 'raw',
  owners: ['ada@shop.example'],
  timeout: '5m',
  run({ partitions }) {
    partitions(customers).add(['acme', 'hooli'])
    partitions(customers).remove(['left'])
    return 7
  },
})
export const perCustomer = asset('mart/per-customer', {
  group: 'mart',
  partitions: customers,
  inputs: { crm },
  run: ({ crm, partition }) => [crm, partition.key],
})
export const sales = asset('mart/sales', { group: 'mart', partitions: day, deps: [feed], run: () => 1 })
export const report = asset('mart/report', { group: 'mart', deps: [sales, perCustomer], run: () => 1 })
`

describe('assets and what is told of them', () => {
  let project: TestProject
  beforeAll(async () => {
    project = new TestProject({ 'assets/all.ts': ASSETS })
    await project.dev()
  })
  afterAll(() => project.end())

  test('every command that takes a selection says so when it matches no asset', async () => {
    const said = async (line: string) => {
      const { code, stdout, stderr } = await project.asked(...line.split(' '))
      return [line, code, stdout.trimEnd() || stderr.split('\n', 1)[0]]
    }
    const lists = ['assets list', 'assets graph', 'partitions status', 'partitions list', 'partitions stale']
    for (const command of lists) {
      expect.soft(await said(`${command} group:nope`)).toEqual([`${command} group:nope`, 0, 'no asset matches group:nope'])
      expect.soft(await said(`${command} nope`)).toEqual([`${command} nope`, 2, 'error: asset "nope" not found'])
    }
    const json = await project.asked('partitions', 'stale', 'group:nope', '--json')
    expect(JSON.parse(json.stdout)).toEqual({ partitions: [], next_cursor: null })
    expect(JSON.parse(json.stderr)).toEqual({ note: 'no asset matches group:nope' })
    for (const command of [
      ...['run', 'run --stale', 'run --dry-run', 'backfills preview --all', 'backfills create --all'],
      ...['schedules create hourly --cron @hourly --select', 'sensors create in --webhook in --verify none --select'],
    ])
      expect
        .soft(await said(`${command} group:nope`))
        .toEqual([
          `${command} group:nope`,
          2,
          expect.stringMatching(/^error: ((--select|select): )?group:nope selects no asset/),
        ])
    // Assets that are gone keep their history, so that a list can be asked for one that is unknown.
    const unknown = 'asset "nope" is not on record'
    expect(await said('runs list --asset nope')).toEqual([expect.anything(), 0, `no run matches; ${unknown}`])
    expect(await said('backfills list --asset nope')).toEqual([expect.anything(), 0, `no backfill matches; ${unknown}`])
    expect(await said('backfills list --asset mart/report')).toEqual([expect.anything(), 0, 'no backfill matches'])
    expect(await said('partitions stale group:raw')).toEqual([expect.anything(), 0, expect.stringMatching(/^asset +partition/)])
  })

  test('list shows every asset in a line, or those that a selection means', async () => {
    const all = await project.servo('assets', 'list')
    const [head, ...lines] = all.stdout.trimEnd().split('\n')
    expect(head).toMatch(/^asset +kind +group +partitions +upstream +description$/)
    expect(lines.map((line) => line.split(' ', 1)[0])).toEqual([
      'mart/per-customer',
      'mart/report',
      'mart/sales',
      'raw/crm',
      'raw/feed',
    ])
    expect(lines[2]).toMatch(/^mart\/sales +asset +mart +daily from 2025-01-01, \d+ +1$/)
    expect(lines[4]).toMatch(/day: daily from 2025-01-01 × region: keys \[eu, us\], \d+ +What the shop sends$/)
    const chosen = await project.json('assets', 'list', 'key:"raw/feed"+')
    expect(chosen.map((asset: { asset_key: string }) => asset.asset_key)).toEqual(['mart/report', 'mart/sales', 'raw/feed'])
  })

  test('graph draws what is made of what', async () => {
    const { stdout } = await project.servo('assets', 'graph', 'group:mart')
    expect(stdout).toBe('mart/per-customer  asset\n└─ mart/report  asset  ← also mart/sales\nmart/sales  asset\n')
  })

  test('keys that an asset adds are partitions once it has succeeded, and their assets can be run', async () => {
    const add = await project.servo('partitions', 'add', 'customers', 'left', 'acme')
    expect(add.stdout).toBe('2 keys added to customers\n')
    expect((await project.servo('run', 'raw/crm', '--quiet')).code).toBe(0)
    expect((await project.servo('partitions', 'keys', 'customers')).stdout).toBe('acme\nhooli\n')
    expect((await project.servo('run', 'mart/per-customer', '--partition', '*', '--quiet')).code).toBe(0)
    const { keys } = await (await project.client()).assets.keys('customers', { limit: 10 })
    expect(keys[1]).toMatchObject({ partition_key: 'hooli', changed_by: expect.stringMatching(/^task:run_.*:raw\/crm$/) })
  })

  test('show tells everything of an asset, and of a wipe by whom and why', async () => {
    const before = await project.servo('assets', 'show', 'raw/crm')
    expect(before.stdout).toMatch(/^raw\/crm {2}asset {2}group raw\n/)
    expect(before.stdout).toMatch(/declared in +assets\/all\.ts:\d+\n/)
    expect(before.stdout).toMatch(/owners +ada@shop\.example\n/)
    expect(before.stdout).toMatch(/timeout +300 s\n/)
    expect(before.stdout).toMatch(/materialized +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d by run_\w{8}\n/)
    expect(before.stdout).toMatch(/last attempt +succeeded, .* by run_\w{8}\n/)
    expect(before.stdout).toMatch(/last run +run_\w{8} succeeded/)
    // Ids of ours mean nothing to a reader; --json has them.
    expect(before.stdout).not.toMatch(/\bg_[a-z2-7]{26}|\b[0-9A-HJKMNP-TV-Z]{26}\b/)
    expect(before.stdout).toMatch(/downstream\n {2}mart\/per-customer\n$/)
    const wiped = await project.servo('partitions', 'wipe', 'raw/crm', '--yes', '--reason', 'wrong customers')
    expect(wiped.stdout).toBe('raw/crm: wiped\n')
    expect((await project.servo('assets', 'show', 'raw/crm')).stdout).toMatch(/wiped +.* by .+: wrong customers\n/)
    const { stderr, code } = await project.servo('run', 'mart/per-customer', '--partition', 'acme')
    expect(stderr).toContain('needs raw/crm, which was never materialized')
    expect(code).toBe(2)
  })

  test('what is not meant is refused with what could be, and nothing is done', async () => {
    const refused: [string[], RegExp][] = [
      [['assets', 'show', 'raw/cmr'], /asset "raw\/cmr" not found\nhint: Did you mean raw\/crm\?/],
      [['partitions', 'add', 'costumers', 'x'], /dynamic set "costumers" not found\nhint: Did you mean customers\?/],
      [['partitions', 'report', 'raw/feed'], /has partitions .* the request names none\nhint: Name them: .*day=\d/],
      [['partitions', 'report', 'raw/feed', '--partition', 'day=eu'], /raw\/feed has no partition eu/],
    ]
    for (const [args, message] of refused) {
      const { code, stderr, stdout } = await project.servo(...args)
      expect(stderr).toMatch(message)
      expect(stdout).toBe('')
      expect(code).toBe(2)
    }
    expect((await (await project.client()).assets.keys('customers', { limit: 10 })).total).toBe(2)
  })
})

describe('without a server', () => {
  test('everything about assets can be asked and told all the same, and the next server knows it', async () => {
    const project = projectOf({ 'assets/all.ts': ASSETS })
    expect((await project.servo('assets', 'show', 'raw/crm')).stdout).toContain('declared in   assets/all.ts:')
    expect((await project.json('partitions', 'why', 'raw/crm')).status).toBe('NEVER_MATERIALIZED')
    expect(project.has('.servo'), 'after questions').toBe(false)

    expect((await project.servo('run', 'raw/crm', '--quiet')).code).toBe(0)
    expect((await project.json('assets', 'show', 'raw/crm')).last_run).toMatchObject({ state: 'SUCCEEDED' })
    expect((await project.json('partitions', 'add', 'customers', 'initech')).added).toBe(1)
    const range = ['--partition', 'day=2025-01-01..2025-01-02', '--at', '2025-01-03T00:00:00Z']
    const told = await project.servo('partitions', 'report', 'raw/feed', ...range)
    expect(told.stdout).toMatch(/^4 partitions of raw\/feed \(day=2025-01-01,region=eu to day=2025-01-02,region=us\)/)
    expect((await project.servo('partitions', 'wipe', 'raw/crm', '--yes')).code).toBe(0)

    await project.dev()
    const { assets } = await project.client()
    expect((await assets.keys('customers', { limit: 10 })).keys.map(({ partition_key }) => partition_key)).toEqual([
      'acme',
      'hooli',
      'initech',
    ])
    expect(await assets.get('raw/crm')).toMatchObject({ wiped: true })
    expect((await assets.list({ select: ['raw/feed'], limit: 1 })).total).toBe(1)
  })
})
