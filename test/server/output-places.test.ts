import { expect, test } from 'vitest'
import { assetDefinition } from '../../src/contract/project-manifest.ts'
import { checksumOf } from '../../src/contract/stored-output.ts'
import { SECOND_MS } from '../../src/lib/time.ts'
import { made, Remote } from './remote.ts'
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

test('[D9] a remote worker may report a small value instead of a file, and nothing that only looks like one', async () => {
  const world = await World.open()
  const remote = new Remote(world)
  await world.define({ data: { queue: 'gpu' }, report: { inputs: { data: { asset_key: 'data' } } } })
  const run = await world.request('r1')
  const work = await remote.take('w1')
  const said = (value: string, more: object = {}) => ({
    ...made(work),
    output: { value, ...checksumOf(new TextEncoder().encode(value)), ...more },
  })
  const { materialization_id } = made(work)
  for (const [body, field] of [
    [said('{"open":'), 'output.value'],
    [said(`"${'x'.repeat(4_095)}"`), 'output.value'],
    [said(`"${'ü'.repeat(2_048)}"`), 'output.value'],
    [said('1', { bytes: 2 }), 'output.value'],
    [said('1', { sha256: 'ab'.repeat(32) }), 'output.value'],
    [said('1', { sha256: 'something' }), 'output.sha256'],
    [said('1', { path: `data/data/_/${materialization_id}.json` }), 'output.value'],
  ] as const) {
    const { status, body: answer } = await remote.completed(work, body)
    expect({ status, field: answer.field }, JSON.stringify(body).slice(0, 200)).toEqual({ status: 400, field })
  }
  expect(world.attempts(run, 'data')).toMatchObject([{ attempt: 1, outcome: null, output: null }])
  expect((await remote.completed(work, said('[1,null]'))).status).toBe(200)
  // The worker missed the answer, and says it again.
  expect((await remote.completed(work, said('[1,null]'))).status).toBe(200)
  await world.clock.advance(SECOND_MS)
  expect(world.states(run)).toEqual({ data: 'SUCCEEDED', report: 'SUCCEEDED' })
  expect(world.workers.started[0]?.payload.inputs['data']?.values).toMatchObject([{ value: '[1,null]', bytes: 8 }])
  expect(await world.problems()).toEqual([])
})
