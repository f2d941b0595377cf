import { expect, test } from 'vitest'
import { assetDefinition } from '../../src/contract/project-manifest.ts'
import { SECOND_MS } from '../../src/lib/time.ts'
import { World } from './world.ts'

/** Keys that would lead elsewhere, or match other files, if they became part of a path as they are. */
const keys = [
  '2025-01-15',
  '../../etc',
  '..',
  '/etc/passwd',
  'a=b',
  'a-b',
  'a*',
  '?',
  'a\\b',
  'a b',
  '_',
  'ä',
  's3://x',
  'x'.repeat(400),
]

test('[L8] a partition key becomes one word in the path of a value, whatever characters it has', async () => {
  const world = await World.open()
  await world.define({ 'mart/orders': { partitions: { type: 'keys', keys } } })
  const run = await world.request('r1', '*', { partitions: ['*'] })
  await world.clock.advance(SECOND_MS)
  const folders = world.workers.started.map(({ payload }) => payload.output_folder)
  expect(world.run(run)).toMatchObject({ state: 'SUCCEEDED', error: null })
  expect(folders).toHaveLength(keys.length)
  for (const folder of folders) expect(folder).toMatch(/^data\/mart\/orders\/[A-Za-z0-9_-][A-Za-z0-9._-]{0,128}\/$/)
  expect(folders).toContain('data/mart/orders/2025-01-15/')
})

test.each(['..', '../x', 'a/../b', '/a', 'a/', 'a//b', '.hidden', 'a/.b', 'a\\b', 'a b', 'a=b', 'ä', 'a\n', '*', ''])(
  '[L8] %j is not an asset key',
  (asset_key) => {
    expect(assetDefinition.safeParse({ asset_key, kind: 'asset' }).success).toBe(false)
    expect(assetDefinition.safeParse({ asset_key: 'mart/v1.2_a-b', kind: 'asset' }).success).toBe(true)
  },
)
