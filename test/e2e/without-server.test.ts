import fs from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { projectOf, TestProject } from './support/project.ts'
import { until } from './support/until.ts'

const assets = (value: number): string => `import { existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { asset, dynamic, source } from 'servo-flow'
import { z } from 'zod'
export const raw = source('raw', { schema: z.object({ id: z.string() }), uri: 's3://shop/raw' })
export const made = asset('made', { run: () => ${value} })
export const other = asset('other', { run: () => 1 })
export const customers = asset('customers', { partitions: dynamic('customers'), run: () => 1 })
export const hold = asset('hold', { run: async () => { while (!existsSync('go')) await sleep(50) } })
`

const ASSETS = { 'assets/all.ts': assets(1) }

/** A project in which things were made and something runs, and whose server is gone. */
async function left(project: TestProject): Promise<{ project: TestProject; runId: string }> {
  const dev = await project.dev('--run', 'made', '--run', 'other')
  await dev.says(/succeeded .* 2 tasks\n/)
  const runId = await project.request('hold')
  await dev.says(/ running +hold\n/)
  dev.kill('SIGKILL')
  await dev.ended
  return { project, runId }
}

/** Everything that was ever told, by name. */
const ledgerOf = (project: TestProject): string[] =>
  fs.globSync('.servo/tenant=*/workspace=*/ledger/**/*.json', { cwd: project.dir }).sort()

async function statusOf(project: TestProject, asset: string): Promise<string> {
  const { partitions } = await project.json('partitions', 'list', asset)
  return partitions[0].status
}

describe('questions without a server', () => {
  let project: TestProject
  let runId = ''
  /** Before anything was asked: the first question could be the one that writes. */
  let before: string[] = []
  beforeAll(async () => {
    project = new TestProject(ASSETS)
    runId = (await left(project)).runId
    project.write('assets/all.ts', assets(2))
    before = ledgerOf(project)
  })
  afterAll(() => project.end())

  test('say what is stale by the code as it is now, or as of when they answer', async () => {
    const { stdout, stderr, code } = await project.asked('partitions', 'stale', 'made')
    expect(stdout + stderr).toMatch(/^made .*code changed|as of/m)
    expect(code).toBe(0)
    const why = await project.asked('partitions', 'why', 'made')
    expect(why.stdout + why.stderr).toMatch(/the code of made changed|as of/)
  })

  test('change nothing', async () => {
    for (const question of [
      ['runs', 'list'],
      ['runs', 'show', runId],
      ['assets', 'list'],
      ['partitions', 'status'],
      ['partitions', 'stale'],
      ['partitions', 'why', 'made'],
    ])
      expect(await project.asked(...question), question.join(' ')).toMatchObject({ code: 0 })
    expect(ledgerOf(project)).toEqual(before)
  })
})

describe('orders without a server', () => {
  test('are carried out by the command itself, and are in the tables when it ends', async () => {
    const { project, runId } = await left(projectOf(ASSETS))
    for (const order of [
      ['partitions', 'wipe', 'made', '--yes'],
      ['partitions', 'report', 'raw'],
      ['partitions', 'add', 'customers', 'acme'],
      ['runs', 'cancel', runId],
    ])
      expect(await project.servo(...order), order.join(' ')).toMatchObject({ code: 0 })
    const rows = await project.query(
      "SELECT asset_key, wiped_at IS NOT NULL AS wiped FROM partition_status WHERE asset_key IN ('made', 'raw') ORDER BY asset_key",
    )
    expect(rows).toEqual([
      { asset_key: 'made', wiped: true },
      { asset_key: 'raw', wiped: false },
    ])
    expect(await statusOf(project, 'made')).toBe('NEVER_MATERIALIZED')
    expect((await project.asked('partitions', 'keys', 'customers')).stdout).toContain('acme')
    const dev = await project.dev()
    const client = project.clientOf(dev)
    await until(async () => (await client.runs.get(runId)).run['state'] === 'CANCELLED', 'the run to be cancelled')
    expect((await client.runs.get(runId)).attempts).toHaveLength(1)
    expect(await statusOf(project, 'made')).toBe('NEVER_MATERIALIZED')
  })

  test('given at the same time are all carried out, one after the other', async () => {
    const { project, runId } = await left(projectOf(ASSETS))
    const orders = await Promise.all([
      project.servo('partitions', 'wipe', 'made', '--yes'),
      project.servo('partitions', 'wipe', 'other', '--yes'),
      project.servo('partitions', 'add', 'customers', 'acme'),
      project.servo('runs', 'cancel', runId),
    ])
    expect(orders.map(({ code, stderr }) => [code, code === 0 ? '' : stderr])).toEqual(orders.map(() => [0, '']))
    const wiped = await project.query('SELECT asset_key FROM partition_status WHERE wiped_at IS NOT NULL')
    expect(wiped.map(({ asset_key }) => asset_key).sort()).toEqual(['made', 'other'])
    for (const asset of ['made', 'other']) expect(await statusOf(project, asset)).toBe('NEVER_MATERIALIZED')
    expect((await project.asked('partitions', 'keys', 'customers')).stdout).toContain('acme')
    const dev = await project.dev()
    await until(
      async () => (await project.clientOf(dev).runs.get(runId)).run['state'] === 'CANCELLED',
      'the run to be cancelled',
    )
  })
})

test('keys can be added to a project that never ran', async () => {
  const project = projectOf(ASSETS)
  expect(await project.servo('partitions', 'add', 'customers', 'acme')).toMatchObject({
    stdout: '1 key added to customers\n',
    code: 0,
  })
  expect((await project.servo('partitions', 'add', 'customer', 'acme')).stderr).toContain('Did you mean customers?')
  expect((await project.servo('run', 'customers', '--partition', '*')).code).toBe(0)
})
