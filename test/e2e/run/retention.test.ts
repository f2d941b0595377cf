import fs from 'node:fs'
import { expect, test } from 'vitest'
import { projectOf } from '../support/project.ts'
import { until } from '../support/until.ts'

const CONFIG = `import { defineConfig } from 'servo-flow'
export default defineConfig({ project: 'shop', dirs: ['assets'], keep: { versions: 1 } })
`
const ASSETS = `import { asset } from 'servo-flow'
const text = () => 'x'.repeat(6_000) + Date.now()
export const report = asset('report', { run: text })
export const all = asset('all', { keep: 'all', run: text })
export const small = asset('small', { keep: { versions: 2 }, run: () => Date.now() })
`
const DATA = '.servo/tenant=default/workspace=default/data'

test('[K1] [K3] servo gc removes what a project does not keep, servo partitions purge what was wiped or superseded, and verify tells removed values from missing ones', async () => {
  const project = projectOf({ 'servo.config.ts': CONFIG, 'assets/all.ts': ASSETS })
  const files = (asset: string) => fs.readdirSync(project.file(`${DATA}/${asset}/_`)).length
  const dev = await project.dev()
  for (let i = 0; i < 3; i++) {
    const run = await project.request('*')
    await until(async () => (await project.shown(run)).run.state === 'SUCCEEDED')
  }
  const dry = await project.json('gc', '--dry-run')
  expect(dry).toMatchObject({ dry_run: true, values: 3, bytes: 2 * 6_015 + 13 })
  expect(dry.assets.map(({ asset_key, values }: Record<string, unknown>) => [asset_key, values])).toEqual([
    ['report', 2],
    ['small', 1],
  ])
  expect([files('report'), files('all')]).toEqual([3, 3])

  expect(await project.servo('gc')).toMatchObject({ code: 2, stderr: expect.stringContaining('Add --yes to confirm') })
  const { stdout, code } = await project.servo('gc', '--yes')
  expect({ stdout, code }).toEqual({
    code: 0,
    stdout: 'report  2 values (12.0 kB)\nsmall   1 value (13 bytes)\n3 values (12.0 kB) removed\n',
  })
  expect([files('report'), files('all')]).toEqual([1, 3])
  expect((await project.servo('gc', '--yes')).stdout).toBe('nothing to remove\n')

  expect((await project.servo('partitions', 'purge', 'all', '--yes')).stdout).toBe('all: 2 values (12.0 kB) removed\n')
  expect((await project.servo('show', 'all')).code, 'the current value stays').toBe(0)
  expect(await project.servo('partitions', 'wipe', 'all', '--yes')).toMatchObject({ code: 0 })
  const purged = await project.json('partitions', 'purge', 'all', '--reason', 'personal data', '--yes')
  expect(purged).toMatchObject({
    asset_key: 'all',
    values: 1,
    in_use: 0,
    removed: [{ path: expect.stringContaining('data/all/_/') }],
  })
  expect([files('report'), files('all')]).toEqual([1, 0])
  const client = await project.client()
  expect(await client.retention.storage()).toMatchObject({
    disk: { free_bytes: expect.any(Number), state: expect.any(String) },
  })
  dev.kill('SIGTERM')
  await dev.ended

  // Without a server too. One of the files is put back, as a kill between record and deletion would leave it.
  fs.writeFileSync(project.file(`${DATA}/${String(purged.removed[0].path).slice('data/'.length)}`), 'x'.repeat(6_015))
  expect((await project.servo('verify', '--data')).stdout).toContain(
    'stored values: 1 match; removed on request or by a rule: 5, 1 of them not deleted yet',
  )
  expect((await project.servo('partitions', 'purge', 'small', '--yes')).stdout).toBe('small: 1 value (13 bytes) removed\n')
  expect(
    await project.query(`select removed_reason, removed_by, count(*)::int as n from value_versions where removed_at is not null
    group by all order by all`),
  ).toEqual([
    { removed_reason: 'expired', removed_by: expect.any(String), n: 3 },
    { removed_reason: 'purged', removed_by: expect.any(String), n: 4 },
  ])
  fs.rmSync(project.file(`${DATA}/report/_/${fs.readdirSync(project.file(`${DATA}/report/_`))[0]}`))
  expect(await project.servo('verify', '--data')).toMatchObject({
    code: 1,
    stdout: expect.stringContaining('is missing, but an attempt has stored it'),
  })
})
