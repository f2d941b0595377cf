import { expect, test } from 'vitest'
import { memoryStore } from '../../../src/adapters/memory/object-store.ts'
import { orchestration } from '../../../src/domain/index.ts'
import { backUp } from '../../../src/engine/backup/back-up.ts'
import { readRecord } from '../../../src/engine/backup/backup-record.ts'
import { copyBack } from '../../../src/engine/backup/copy-back.ts'
import { verify } from '../../../src/engine/check/verify.ts'
import type { Leading } from '../../../src/engine/ledger/leading.ts'
import { sha256 } from '../../../src/lib/hash.ts'
import type { ObjectStore } from '../../../src/ports/object-store.ts'
import type { StoreRequest } from '../../../src/testing/counting-store.ts'
import { backupOf, storeCopier } from '../../../src/testing/store-copier.ts'
import { interceptedStore } from '../../engine/intercepted-store.ts'
import { isFaultTried } from '../../tried-faults.ts'
import { Keeping, keep } from './keeping.ts'

interface BackedUpOptions {
  readonly from?: ObjectStore
  readonly prune?: boolean
  readonly isChecked?: boolean
  readonly lease?: Leading
}

async function backedUp(
  world: Keeping,
  to: ObjectStore,
  { from = world.store as ObjectStore, prune = false, isChecked = true, lease }: BackedUpOptions = {},
) {
  const { scope } = world.memory
  const check = async (store: ObjectStore): Promise<void> => {
    const report = await verify({ store, scope, registry: orchestration, scratch: memoryStore(), quick: true })
    expect(report.problems).toEqual([])
  }
  const options = { scope, registry: orchestration, clock: world.clock, ...(lease && { lease }) }
  return await backUp({
    ...backupOf(from, to),
    ...options,
    prune,
    ...(isChecked && { check }),
    besides: [{ path: SECRETS, isSound: (bytes) => bytes.length > 0 }],
  })
}

const SECRETS = 'local/secrets.json'

/** What a restore of a backup gives, with what was wrong. */
async function restored(backup: ObjectStore) {
  const store = memoryStore()
  const record = (await readRecord(backup))!
  const { problems } = await copyBack({ from: backup, to: store, files: storeCopier(backup, store), record })
  return { store, problems, made_at: record.made_at }
}

async function digests(store: ObjectStore): Promise<Record<string, string>> {
  const found: Record<string, string> = {}
  for await (const { path } of store.list('')) found[path] = sha256((await store.get(path))!)
  return found
}

async function copyOf(store: ObjectStore): Promise<ObjectStore> {
  const copy = memoryStore()
  for await (const { path } of store.list('')) await copy.put(path, (await store.get(path))!)
  return copy
}

async function checkedWhole(store: ObjectStore, { memory: { scope } }: Keeping) {
  const report = await verify({ store, scope, registry: orchestration, scratch: memoryStore(), data: true })
  return { problems: report.problems, not_deleted: report.values?.not_deleted }
}

const log = (world: Keeping, chunk: number): string =>
  `${world.root}logs/run_1/attempt_1/000000000001-00000000000${chunk}.ndjson`

test.each([
  ['list', 'manifests/'],
  ['list', 'ledger/'],
  ['get', 'ledger/'],
  ['list', 'ledger/orchestration.archives/'],
  ['size', 'data/'],
  ['get', 'data/'],
])(
  '[K4][K8] a backup during which values are made and removed has every value that its ledger keeps: at its first %s of %s',
  async (by, folder) => {
    const world = await Keeping.open([{ asset_key: 'a', ...keep(1) }])
    for (let i = 0; i < 3; i++) await world.make('a')
    await world.server.orchestrator.publish()
    let isRemoved = false
    const from = interceptedStore(world.store, async ({ method, path }) => {
      if (isRemoved || method !== by || !path.startsWith(`${world.root}${folder}`)) return
      isRemoved = true
      for (let i = 0; i < 3; i++) await world.make('a')
      await world.server.api.retention.collect({}, 'tester')
    })
    const to = memoryStore()
    expect(await backedUp(world, to, { from })).toMatchObject({ problems: [], mended: [] })
    expect(isRemoved).toBe(true)
    expect(await world.files()).toEqual(['m6'])
    expect(await checkedWhole((await restored(to)).store, world)).toEqual({ problems: [], not_deleted: 0 })
  },
)

test('[K8] a value that is made after the ledger was copied, and the one that it replaced and whose file is gone, are both accounted for', async () => {
  const world = await Keeping.open([{ asset_key: 'a', ...keep(1) }])
  for (let i = 0; i < 2; i++) await world.make('a')
  let times = 0
  // Each time that the backup asks for a value, the value is on its way out.
  const from = interceptedStore(world.store, async ({ method, path }) => {
    if (method !== 'size' || !path.startsWith(`${world.root}data/`) || times++ >= 5) return
    await world.make('a')
    await world.server.api.retention.collect({}, 'tester')
  })
  const to = memoryStore()
  expect(await backedUp(world, to, { from })).toMatchObject({ problems: [] })
  expect(times).toBeGreaterThan(5)
  expect(await checkedWhole((await restored(to)).store, world)).toEqual({ problems: [], not_deleted: 0 })
})

/** A project that has changed in every way since it was backed up. */
async function changedSince(backup: ObjectStore): Promise<Keeping> {
  const world = await Keeping.open([{ asset_key: 'a', ...keep(1) }, { asset_key: 'b' }], (_, made) => ({
    inline: made % 5 === 0,
  }))
  await world.store.put(SECRETS, Buffer.from('secrets'))
  for (let i = 0; i < 3; i++) await world.make('*')
  await world.server.orchestrator.publish()
  await world.store.put(log(world, 1), Buffer.from('one\n'))
  await world.store.put(log(world, 2), Buffer.from('two\n'))
  await backedUp(world, backup)
  // Days pass: the ledger is packed, values are removed, a log has grown and one is gone, and the secrets are others.
  for (let i = 0; i < 4; i++) {
    await world.away(1)
    await world.make('*')
  }
  await world.server.api.retention.collect({}, 'tester')
  await world.wait()
  await world.server.orchestrator.publish()
  await world.store.put(log(world, 1), Buffer.from('one\nand more\n'))
  await world.store.delete(log(world, 2))
  await world.store.put(SECRETS, Buffer.from('SECRETS'))
  return world
}

test.each([false, true])(
  '[K7] a backup that is killed at any request leaves the one before as it was, and the next one is as if nothing had happened (pruned: %s)',
  { timeout: 120_000 },
  async (prune) => {
    const first = memoryStore()
    const world = await changedSince(first)
    const before = await restored(first)
    expect(await checkedWhole(before.store, world)).toEqual({ problems: [], not_deleted: 0 })
    const second = await copyOf(first)
    const report = await backedUp(world, second, { prune })
    expect(report).toMatchObject({ problems: [], mended: [] })
    expect(report.removed).toBeGreaterThan(5)
    const after = await restored(second)
    expect(await checkedWhole(after.store, world)).toEqual({ problems: [], not_deleted: 0 })
    const paths = Object.keys(await digests(after.store))
    expect(paths.some((path) => path.includes('orchestration.archives/'))).toBe(true)
    expect(paths.includes(log(world, 2))).toBe(!prune)
    const [wholeBefore, wholeAfter, wholeBackup] = await Promise.all([before.store, after.store, second].map(digests))
    expect(wholeBefore).not.toEqual(wholeAfter)

    let tried = 0
    for (let request = 1; ; request++) {
      if (request > 1 && !isFaultTried()) continue
      const backup = await copyOf(first)
      let seen = 0
      let killedAt: StoreRequest | undefined
      const killed = interceptedStore(backup, (asked) => {
        if (killedAt === undefined && ++seen < request) return
        killedAt ??= asked
        throw new Error('killed')
      })
      await backedUp(world, killed, { prune, isChecked: false }).catch(() => undefined)
      if (killedAt === undefined) break
      tried += 1
      const name = `killed at request ${request}: ${killedAt.method} ${killedAt.path}`
      const { store, problems, made_at } = await restored(backup)
      expect(problems, name).toEqual([])
      expect(await digests(store), name).toEqual(made_at === before.made_at ? wholeBefore : wholeAfter)
      expect(await backedUp(world, backup, { prune, isChecked: false }), name).toMatchObject({ problems: [], mended: [] })
      expect(await digests(backup), name).toEqual(wholeBackup)
    }
    expect(tried).toBeGreaterThan(10)
  },
)

test('[K7] a backup that was stopped, and taken over by another at any moment, changes nothing of the newer one when it goes on', {
  timeout: 120_000,
}, async () => {
  const first = memoryStore()
  const world = await changedSince(first)
  const earlier = await copyOf(world.store)
  await world.make('*')
  await world.server.orchestrator.publish()
  await world.store.put(log(world, 1), Buffer.from('one\nand more\nand more\n'))
  let tried = 0
  for (let request = 1; ; request++) {
    if (request > 1 && !isFaultTried()) continue
    const backup = await copyOf(first)
    let seen = 0
    let newer: Record<string, string> | undefined
    let name = ''
    const lease = {
      get isHeld() {
        return newer === undefined
      },
      confirm: async () => newer === undefined,
    }
    // Between two acts: one that has begun cannot be called back.
    const stopping = async ({ method, path }: StoreRequest): Promise<void> => {
      if (newer !== undefined || ['put', 'create', 'delete'].includes(method) || ++seen < request) return
      name = `taken over at request ${request}: ${method} ${path}`
      newer = {}
      await backedUp(world, backup, { isChecked: false })
      newer = await digests(backup)
    }
    const from = interceptedStore(earlier, stopping)
    await backedUp(world, interceptedStore(backup, stopping), { from, lease, isChecked: false }).catch(() => undefined)
    if (newer === undefined) break
    tried += 1
    expect(await digests(backup), name).toEqual(newer)
  }
  expect(tried).toBeGreaterThan(10)
})

test('[K7] files that an interrupted backup left are no obstacle to a copy that was restored from the one before', async () => {
  const backup = memoryStore()
  const world = await Keeping.open([{ asset_key: 'a' }])
  await world.make('a')
  await world.server.orchestrator.publish()
  await backedUp(world, backup)
  const { store } = await restored(backup)
  // The original goes on, and the backup of that is killed before its record.
  await world.make('a')
  await world.server.orchestrator.publish()
  const killed = interceptedStore(backup, ({ method, path }) => {
    if (method === 'put' && path.startsWith('lists/')) throw new Error('killed')
  })
  await expect(backedUp(world, killed)).rejects.toThrow('killed')
  expect(Object.keys(await digests(backup)).length).toBeGreaterThan(Object.keys(await digests(store)).length)
  expect(await backedUp(world, backup, { from: store })).toMatchObject({ copied: { files: 0 }, mended: [] })
  expect(await digests((await restored(backup)).store)).toEqual(await digests(store))
})
