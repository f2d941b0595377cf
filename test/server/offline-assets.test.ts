import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { AssetsApi } from '../../src/api/asset-contract.ts'
import { assetDefinition } from '../../src/contract/project-manifest.ts'
import { AssetsDefined } from '../../src/domain/assets/assets-defined.event.ts'
import { Ledger } from '../../src/engine/ledger/ledger.ts'
import { newEvent } from '../../src/model/event.ts'
import { leadBriefly } from '../../src/server/brief-leader.ts'
import { localComponents } from '../../src/server/components.ts'
import { readWorkspace } from '../../src/server/workspace/reader.ts'

/** A folder that knows these assets, and that nobody runs. */
async function folder(): Promise<string> {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'servo-offline-'))
  onTestFinished(() => fs.rmSync(dir, { recursive: true, force: true }))
  const ledger = new Ledger({ ...localComponents(dir), source: 'test' })
  const assets = [
    assetDefinition.parse({ asset_key: 'by', kind: 'asset', partitions: { type: 'dynamic', name: 'customers' } }),
    assetDefinition.parse({ asset_key: 'whole', kind: 'source' }),
  ].map((definition) => ({ asset_key: definition.asset_key, asset_id: `id-${definition.asset_key}`, definition }))
  await ledger.append([newEvent(AssetsDefined, { graph_version: 'g1', assets })])
  return dir
}

/** Does what a command does while nobody leads. */
async function tell<T>(dir: string, command: (assets: AssetsApi) => Promise<T>): Promise<T> {
  const components = localComponents(dir)
  const lease = await components.lease.claim({ name: 'test', term: 'brief' })
  if (!lease.held) throw new Error('somebody else leads')
  try {
    return await leadBriefly(components, { lease, name: 'test' }, ({ assets }) => command(assets))
  } finally {
    await lease.release()
  }
}

const ask = async (dir: string): Promise<AssetsApi> => (await readWorkspace(localComponents(dir))).assets

test('keys are added and removed in a folder that nobody runs, and the same request is made once', async () => {
  const dir = await folder()
  const add = { add: ['acme'], request_id: 'r1' }
  expect(await tell(dir, (assets) => assets.changeKeys('customers', add, 'ada'))).toMatchObject({ added: 1, created: true })
  expect(await tell(dir, (assets) => assets.changeKeys('customers', { remove: ['acme'] }, 'ada'))).toMatchObject({ removed: 1 })
  const again = await tell(dir, (assets) => assets.changeKeys('customers', add, 'ada'))
  expect(again).toMatchObject({ created: false, accepted_event_id: null })
  expect(await (await ask(dir)).keys('customers', { limit: 10 })).toMatchObject({ keys: [], total: 0 })
})

test('a report and a wipe are read back by the next reader, and made once', async () => {
  const dir = await folder()
  const report = { report_id: 'r1', materialized_at: '2025-01-03T00:00:00Z' }
  expect(await tell(dir, (assets) => assets.report('whole', report, 'ada'))).toMatchObject({ created: true })
  expect(await tell(dir, (assets) => assets.report('whole', report, 'ada'))).toMatchObject({ created: false })
  expect((await (await ask(dir)).get('whole')).status).toMatchObject({
    last_materialization_at: '2025-01-03T00:00:00.000Z',
    last_materialization_run_id: null,
  })
  await tell(dir, (assets) => assets.wipe('whole', { request_id: 'w1', reason: 'a test' }, 'ada'))
  expect(await tell(dir, (assets) => assets.wipe('whole', { request_id: 'w1' }, 'ada'))).toMatchObject({ created: false })
  expect(await (await ask(dir)).get('whole')).toMatchObject({
    wiped: true,
    status: { wiped_by: 'ada', wiped_reason: 'a test', last_materialization_at: '2025-01-03T00:00:00.000Z' },
  })
})

test('what is refused has written nothing', async () => {
  const dir = await folder()
  const written = () => fs.readdirSync(dir, { recursive: true }).length
  const before = written()
  const assets = await ask(dir)
  await expect(assets.report('by', {}, 'ada')).rejects.toMatchObject({ code: 'partitions_wanted' })
  await expect(assets.wipe('who', {}, 'ada')).rejects.toMatchObject({ code: 'no_such_asset' })
  await expect(assets.changeKeys('customers', { add: ['a'], remove: ['a'] }, 'ada')).rejects.toMatchObject({ code: 'bad_body' })
  expect(written()).toBe(before)
})

test.each([
  ['', 'a key cannot be empty'],
  ['*', 'Key "*" cannot be added: it stands for all partitions'],
  ['a..b', 'Key "a..b" cannot be added: it contains "..", which stands between the ends of a range'],
  ['x'.repeat(300), `Key "${'x'.repeat(40)}…" is too long: 300 characters, at most 255`],
  ['a\tb', 'Key "a\\tb" cannot be added: it contains control characters'],
])('without a server too, the key %j is refused in a message that names it', async (key, message) => {
  const assets = await ask(await folder())
  await expect(assets.changeKeys('customers', { add: ['acme', key] }, 'ada')).rejects.toMatchObject({ message })
})
