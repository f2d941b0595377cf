import { zstdDecompressSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { scanLedger } from '../../../src/engine/ledger/scan-ledger.ts'
import { Paths } from '../../../src/engine/paths.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../src/lib/time.ts'
import { knownRows } from '../../../src/server/leader/known-rows.ts'
import { forgottenValues } from '../../../src/server/leader/retention/forgotten-values.ts'
import { Keeping, keep } from './keeping.ts'

test('[K1] everything is kept unless an asset or the project says otherwise', async () => {
  const world = await Keeping.open([{ asset_key: 'a' }, { asset_key: 'b', ...keep(1) }])
  for (let i = 0; i < 3; i++) await world.make('*')
  await world.away(100)
  expect((await world.files()).length).toBe(4)
  expect(await world.server.api.retention.collect({ dry_run: true }, 'tester')).toEqual({
    values: [],
    retained_assets: 1,
    next_cursor: null,
  })
  expect(await world.checked()).toMatchObject({ problems: [], values: { checked: 4, removed: 2, not_deleted: 0 } })
})

test('[K1] the newest versions of each partition are kept, and the others go a quarter of an hour after they were pushed out', async () => {
  const partitions = { type: 'keys', keys: ['eu', 'us'] }
  const world = await Keeping.open([{ asset_key: 'a', partitions, ...keep(2) }])
  for (let i = 0; i < 4; i++) await world.make('a', 'eu')
  await world.make('a', 'us')
  await world.clock.advance(10 * 60_000)
  expect(await world.files()).toEqual(['m1', 'm2', 'm3', 'm4', 'm5'])
  await world.wait()
  expect(await world.files()).toEqual(['m3', 'm4', 'm5'])
  await world.make('a', 'us')
  await world.make('a', 'us')
  await world.wait()
  expect(await world.files()).toEqual(['m3', 'm4', 'm6', 'm7'])
  expect(world.troubles).toEqual([])
})

test('[K1] a value stays for the days of its asset after it was pushed out, also across a restart', async () => {
  const world = await Keeping.open([{ asset_key: 'a', ...keep(1, 7) }])
  await world.make('a')
  await world.away(30)
  await world.make('a')
  await world.away(6)
  expect(await world.files()).toEqual(['m1', 'm2'])
  await world.away(2)
  expect(await world.files()).toEqual(['m2'])
})

test('[K1] another rule is followed from the beginning: what the old one kept is looked at again', async () => {
  const world = await Keeping.open([{ asset_key: 'a', ...keep(3) }])
  for (let i = 0; i < 5; i++) await world.make('a')
  await world.wait()
  expect(await world.files()).toEqual(['m3', 'm4', 'm5'])
  await world.define([{ asset_key: 'a', ...keep(1) }])
  await world.wait()
  expect(await world.files()).toEqual(['m5'])
  await world.define([{ asset_key: 'a' }])
  await world.make('a')
  await world.wait()
  expect(await world.files()).toEqual(['m5', 'm6'])
})

test('[K2] what a running attempt or an unfinished run may read stays until that is over', async () => {
  const world = await Keeping.open(
    [
      { asset_key: 'a', ...keep(1) },
      { asset_key: 'slow', io: 'none' },
      { asset_key: 'reader', io: 'none', inputs: { a: { asset_key: 'a' } }, deps: [{ asset_key: 'slow' }] },
    ],
    ({ asset_key }) =>
      asset_key === 'a' ? undefined : { ms: HOUR_MS, result: { outcome: 'SUCCEEDED', materialization_id: 'none' } },
  )
  // The run has made its own a, and reads that one hours later, though others have made newer ones.
  await world.make('+key:reader')
  await world.make('key:a')
  await world.make('key:a')
  await world.wait(40)
  expect((await world.files()).length).toBe(3)
  expect((await world.server.api.retention.collect({}, 'tester')).values).toEqual([])
  await world.wait(120)
  expect((await world.files()).length).toBe(1)
  expect(await world.checked()).toMatchObject({ problems: [], values: { checked: 1, removed: 2 } })
})

test('[K3] a purge removes wiped and superseded values and never the current one, small values too', async () => {
  const world = await Keeping.open([{ asset_key: 'a' }], (_, made) => ({ inline: made % 2 === 0 }))
  for (let i = 0; i < 4; i++) await world.make('a')
  const { retention, assets } = world.server.api
  const first = await retention.purge('a', { dry_run: true }, 'ana')
  expect(first.values.map(({ materialization_id }) => materialization_id)).toEqual(['m1', 'm2', 'm3'])
  expect(await world.files()).toEqual(['m1', 'm3'])
  await retention.purge('a', { reason: 'personal data' }, 'ana')
  expect(await world.files()).toEqual([])
  expect((await retention.purge('a', {}, 'ana')).values, 'the current one stays').toEqual([])
  await assets.wipe('a', { reason: 'wrong' }, 'ana')
  expect((await retention.purge('a', {}, 'ana')).values).toMatchObject([{ materialization_id: 'm4', bytes: 10 }])
  expect(await world.checked()).toMatchObject({ problems: [], values: { checked: 0, removed: 2 } })
  await world.wait(1)
  await world.make('a')
  expect((await retention.purge('a', {}, 'ana')).values).toEqual([])
})

test('[K5] whoever packs the ledger learns which small values were removed, of partitions too', async () => {
  const partitions = { type: 'keys', keys: ['eu', 'us'] }
  const world = await Keeping.open(
    [
      { asset_key: 'a', ...keep(1) },
      { asset_key: 'p', partitions, ...keep(1) },
    ],
    () => ({ inline: true }),
  )
  for (let i = 0; i < 2; i++) {
    await world.make('a')
    await world.make('p', 'eu')
  }
  await world.make('p', 'us')
  await world.wait()
  const known = knownRows(() => world.server.orchestrator.readable)
  const { scope } = world.memory
  const found: unknown[] = []
  for await (const scanned of scanLedger({ store: world.store, scope, paths: new Paths(scope) })) {
    if ('error' in scanned) throw scanned.error
    for (const event of scanned.segment.events)
      if (event.event_type === 'TaskFinished')
        found.push([event.payload['materialization_id'], ...(await forgottenValues(known, [event]))])
  }
  expect(found).toEqual([
    ['m1', true],
    ['m2', true],
    ['m3', false],
    ['m4', false],
    ['m5', false],
  ])

  // The day is settled once later ones are on record.
  for (let day = 0; day < 3; day++) {
    await world.wait(DAY_MS / MINUTE_MS)
    await world.make('a')
    await world.wait()
  }
  const [packed = ''] = await Array.fromAsync(world.store.list(new Paths(scope).archives), ({ path }) => path)
  const bytes = (await world.store.get(packed)) ?? new Uint8Array()
  const text = zstdDecompressSync(bytes).toString()
  // The third was removed meanwhile: a newer one is made every day.
  expect([1, 2, 3, 4, 5].map((made) => text.includes(`{\\"made\\":${made}}`))).toEqual([false, false, false, true, true])
  expect(await world.checked()).toMatchObject({ problems: [] })
})

test('[K2] a file that was made for several partitions stays while one of them keeps it', async () => {
  const partitions = { type: 'keys', keys: ['eu', 'us'] }
  const world = await Keeping.open([{ asset_key: 'a', partitions, ranges: {}, ...keep(1) }])
  const { runs, retention } = world.server.api
  await runs.request({ select: ['a'], key: 'both', partitions: ['*'] }, 'tester')
  await world.clock.advance(1_000)
  expect(await world.files()).toEqual(['m1'])
  await world.make('a', 'eu')
  await world.wait()
  expect(await world.files()).toEqual(['m1', 'm2'])
  expect((await retention.purge('a', { partitions: ['eu'] }, 'ana')).values, 'only a part of it is asked for').toEqual([])
  await world.make('a', 'us')
  await world.wait()
  expect(await world.files()).toEqual(['m2', 'm3'])
  expect(await world.checked()).toMatchObject({ problems: [], values: { checked: 2, removed: 1 } })
})

test('[K1] values under the former name of an asset are versions of the same partitions', async () => {
  const world = await Keeping.open([{ asset_key: 'old', ...keep(2) }])
  for (let i = 0; i < 2; i++) await world.make('*')
  await world.define([{ asset_key: 'new', renamed_from: 'old', ...keep(2) }])
  await world.make('new')
  await world.wait()
  expect(await world.files()).toEqual(['m2', 'm3'])
  await world.make('new')
  await world.wait()
  expect(await world.files()).toEqual(['m3', 'm4'])
})
