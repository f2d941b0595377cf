import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { memoryStore } from '../../src/adapters/memory/object-store.ts'
import { type AssetDefinitionInput, assetDefinition } from '../../src/contract/project-manifest.ts'
import { assetDefinitions } from '../../src/domain/assets/asset-definitions.table.ts'
import { AssetsDefined } from '../../src/domain/assets/assets-defined.event.ts'
import { assetsDefined } from '../../src/domain/assets/definitions.ts'
import { keysOfAsset } from '../../src/domain/assets/former-keys.ts'
import { orchestration } from '../../src/domain/index.ts'
import { dataVersions } from '../../src/domain/partitions/data-versions.table.ts'
import { MaterializationReported } from '../../src/domain/partitions/materialization-reported.event.ts'
import { PartitionKeysAdded } from '../../src/domain/partitions/partition-keys-added.event.ts'
import { PartitionKeysRemoved } from '../../src/domain/partitions/partition-keys-removed.event.ts'
import { partitionStatus } from '../../src/domain/partitions/partition-status.table.ts'
import { PartitionWiped } from '../../src/domain/partitions/partition-wiped.event.ts'
import { storedValues } from '../../src/domain/partitions/stored-values.table.ts'
import type { State } from '../../src/engine/fold/state.ts'
import { Ledger } from '../../src/engine/ledger/ledger.ts'
import { View } from '../../src/engine/loop/view.ts'
import { segmentUlid } from '../../src/engine/paths.ts'
import { Compactor } from '../../src/engine/publish/compactor.ts'
import type { ColdRowsToRead } from '../../src/engine/sorted/cold-store.ts'
import { toIso } from '../../src/lib/time.ts'
import { ulidSource } from '../../src/lib/ulid.ts'
import { type NewEvent, newEvent } from '../../src/model/event.ts'
import type { Table } from '../../src/model/table.ts'
import { partitionDefinition } from '../../src/partitions/definition.ts'
import { partitionSet } from '../../src/partitions/partition-set.ts'
import { CurrentGraph } from '../../src/server/leader/current-graph.ts'
import { coldRowsOf } from '../../src/server/workspace/knowledge.ts'
import { Statuses } from '../../src/server/workspace/status/statuses.ts'

const seed = Number(process.env['SEED'] ?? Date.now())
const scope = { tenant_id: 'acme', workspace_id: 'prod' }

/** A workspace in memory whose clock stands until somebody moves it. */
async function workspace() {
  const store = memoryStore()
  let nowMs = Date.UTC(2025, 0, 20, 12)
  let number = 0
  const clock = { now: () => nowMs, monotonic: () => nowMs, sleep: () => Promise.resolve() }
  const ulid = ulidSource(clock.now, (length) => new Uint8Array(length).fill(number++ % 250))
  const compactor = await Compactor.open({ store, scope, registry: orchestration, clock, name: 'test' })
  const ledger = new Ledger({ store, scope, clock, ulid, source: 'test' })
  const over = (state: () => State, coldRows: (table: Table) => ColdRowsToRead): Statuses => {
    const graph = new CurrentGraph(state, clock.now)
    return new Statuses({
      // As if a reactor had told it of every change.
      graph: () => {
        graph.reactor.react([] as never)
        return graph.get()
      },
      partitions: () => graph.partitions(),
      rows: () => coldRowsOf({ coldRows }, partitionStatus),
      versions: () => coldRowsOf({ coldRows }, dataVersions),
      values: () => coldRowsOf({ coldRows }, storedValues),
      now: clock.now,
      keysOf: (key) => keysOfAsset(state(), key),
      recorded: (key) => state().hot(assetDefinitions).get(key),
    })
  }
  const tell = async (...events: NewEvent[]): Promise<void> => {
    nowMs += 1_000
    const { segment, events: written } = await ledger.append(events)
    await compactor.fold.apply([{ ulid: segmentUlid(segment) ?? segment, events: written }])
  }
  return {
    compactor,
    tell,
    later: (ms: number) => {
      nowMs += ms
    },
    /** What a server keeps. */
    kept: over(
      () => compactor.state,
      (table) => compactor.coldRows(table),
    ),
    cold: () =>
      over(
        () => compactor.state,
        (table) => compactor.coldRows(table),
      ),
    /** What a process of its own reads from the files. */
    async offline(): Promise<Statuses> {
      const view = await View.open({ store, scope, registry: orchestration, clock })
      const { state } = await view.fresh({ maxTimeMs: 1e9 })
      return over(
        () => state,
        (table) => view.coldRows(table, state),
      )
    },
    async declare(assets: readonly AssetDefinitionInput[]): Promise<void> {
      const manifest = { assets: assets.map((asset) => assetDefinition.parse({ code_version: 'v1', ...asset })), pools: {} }
      const known = compactor.state.hot(assetDefinitions).all()
      const parts = assetsDefined({ manifest, known, knownPools: [], now: nowMs, mintId: ulid })
      await tell(...parts.map((part) => newEvent(AssetsDefined, part)))
    },
    report: (asset: string, partition = '', at = nowMs + 1_000, version?: string) =>
      tell(
        newEvent(MaterializationReported, {
          report_id: `r${number++}`,
          asset_key: asset,
          partition_key: partition,
          materialized_at: toIso(at),
          code_version: 'v1',
          data_version: version ?? null,
          reported_by: 'test',
        }),
      ),
    wipe: (asset: string, partition = '') =>
      tell(
        newEvent(PartitionWiped, { request_id: `w${number++}`, asset_key: asset, partition_key: partition, wiped_by: 'ada' }),
      ),
    add: (...keys: string[]) =>
      tell(newEvent(PartitionKeysAdded, { request_id: `k${number++}`, set_name: 'shops', keys, changed_by: 'ada' })),
  }
}

const days = { type: 'daily', start: '2025-01-01', timezone: 'UTC' }
const shops = { type: 'dynamic', name: 'shops' }
const assets: AssetDefinitionInput[] = [
  { asset_key: 'raw', kind: 'asset', partitions: days },
  { asset_key: 'clean', kind: 'asset', partitions: days, deps: [{ asset_key: 'raw' }] },
  { asset_key: 'shop', kind: 'asset', partitions: shops },
  {
    asset_key: 'total',
    kind: 'asset',
    deps: [
      { asset_key: 'clean', mapping: { type: 'all' } },
      { asset_key: 'shop', mapping: { type: 'all' } },
    ],
  },
]

const all = { order: 'oldest', limit: 1_000 } as const

describe('the status of partitions', () => {
  test(`is the same from memory, from files and from both, whatever was published when (seed ${seed})`, async () => {
    const step = fc.oneof(
      fc.record({
        op: fc.constantFrom('report', 'wipe'),
        asset: fc.constantFrom('raw', 'clean'),
        day: fc.integer({ min: 1, max: 19 }),
      }),
      fc.record({
        op: fc.constantFrom('same', 'other'),
        asset: fc.constantFrom('raw', 'clean'),
        day: fc.integer({ min: 1, max: 3 }),
      }),
      fc.record({ op: fc.constantFrom('report', 'wipe'), asset: fc.constant('total'), day: fc.constant(0) }),
      fc.record({ op: fc.constantFrom('shop', 'add'), asset: fc.constantFrom('a', 'b', 'c'), day: fc.constant(0) }),
      fc.record({ op: fc.constantFrom('delta', 'base', 'ask', 'day'), asset: fc.constant(''), day: fc.constant(0) }),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
        const space = await workspace()
        await space.declare(assets)
        for (const { op, asset, day } of steps) {
          const key = day === 0 ? '' : `2025-01-${String(day).padStart(2, '0')}`
          if (op === 'report') await space.report(asset, key)
          else if (op === 'same' || op === 'other') await space.report(asset, key, undefined, op)
          else if (op === 'wipe') await space.wipe(asset, key)
          else if (op === 'add') await space.add(asset)
          else if (op === 'shop') await space.report('shop', asset)
          else if (op === 'day') space.later(86_400_000)
          else if (op === 'ask') await space.kept.summaries(undefined)
          else await space.compactor.publish({ kind: op as 'delta' | 'base' })
        }
        const expected = { summaries: await space.cold().summaries(undefined), list: await space.cold().list(all) }
        for (const other of [space.kept, await space.offline()]) {
          expect({ summaries: await other.summaries(undefined), list: await other.list(all) }).toEqual(expected)
        }
        const stale = expected.list.partitions.filter(({ is_stale }) => is_stale)
        expect((await space.kept.stale({ limit: 1_000 })).partitions).toEqual(stale)
      }),
      { seed, numRuns: 40 },
    )
  })

  test.each([
    ['in memory', false],
    ['in files', true],
  ])(
    '[P16] of what was made from data that is what it was again, %s, is fresh until it is something else',
    async (_, published) => {
      const space = await workspace()
      await space.declare(assets)
      const days = Array.from({ length: 19 }, (_, i) => `2025-01-${String(i + 1).padStart(2, '0')}`)
      const report = async (asset: string, key: string, version?: string, at?: number): Promise<void> => {
        await space.report(asset, key, at, version)
        if (published) await space.compactor.publish({ kind: 'base' })
      }
      const causes = async (): Promise<unknown[]> => {
        const answers: unknown[] = []
        for (const each of [space.kept, space.cold(), await space.offline()]) {
          const [page, why] = await Promise.all([each.stale({ limit: 10, select: 'total' }), each.why('total', undefined)])
          const [summary] = await each.summaries('total')
          expect(summary?.statuses.STALE).toBe(page.partitions.length)
          expect(why.is_stale).toBe(page.partitions.length > 0)
          answers.push(why.because.map(({ cause, upstream }) => `${cause} ${upstream?.partition_keys.join(' ')}`))
        }
        expect(answers[1]).toEqual(answers[0])
        expect(answers[2]).toEqual(answers[0])
        return answers[0] as unknown[]
      }
      for (const day of days) await space.report('raw', day, undefined, 'A')
      for (const day of days) await space.report('clean', day, undefined, 'A')
      await report('total', '')
      expect(await causes()).toEqual([])
      await report('clean', '2025-01-03', 'B')
      expect(await causes()).toEqual(['upstream_changed 2025-01-03'])
      await report('clean', '2025-01-03', 'A')
      await report('clean', '2025-01-07', 'A')
      expect(await causes()).toEqual([])
      // Somebody tells late of something that was there before the total was made: it may have read that.
      const row = await space.compactor.lookup(partitionStatus, 'total', '')
      await report('clean', '2025-01-07', 'C', (row?.last_materialization_at ?? 0) - 1)
      expect(await causes()).toEqual(['upstream_changed 2025-01-07'])
      await report('clean', '2025-01-05')
      expect(await causes()).toEqual(['upstream_changed 2025-01-05 2025-01-07'])
      const [other] = (await space.kept.list({ ...all, select: 'clean', partition: '2025-01-03' })).partitions
      expect(other?.last_materialization_data_version).toBe('A')
    },
  )

  test('is asked for page by page, newest or oldest first, by status, cause, asset and range', async () => {
    const space = await workspace()
    await space.declare(assets)
    for (let day = 10; day < 15; day++) await space.report('raw', `2025-01-${day}`)
    const keys = async (query: Partial<Parameters<Statuses['list']>[0]>): Promise<string[]> => {
      const found: string[] = []
      for (let cursor: string | undefined; ; ) {
        const page = await space.kept.list({ order: 'newest', limit: 4, select: 'raw', ...query, cursor })
        found.push(...page.partitions.map(({ partition_key }) => partition_key))
        expect(page.partitions.length).toBeLessThanOrEqual(4)
        if (page.next_cursor === null) return found
        cursor = page.next_cursor
      }
    }
    const january = Array.from({ length: 19 }, (_, i) => `2025-01-${String(i + 1).padStart(2, '0')}`)
    expect(await keys({ order: 'oldest' })).toEqual(january)
    expect(await keys({})).toEqual([...january].reverse())
    expect(await keys({ status: 'MATERIALIZED', order: 'oldest' })).toEqual(january.slice(9, 14))
    expect(await keys({ partition: '2025-01-13..', order: 'oldest', status: 'NEVER_MATERIALIZED' })).toEqual(january.slice(14))
    expect(await keys({ select: 'key:"raw" or key:"clean"', partition: '2025-01-10' })).toEqual(['2025-01-10', '2025-01-10'])
    const missing = await space.kept.stale({ limit: 100, cause: 'upstream_missing', select: 'clean' })
    expect(missing.partitions.map(({ partition_key }) => partition_key)).toEqual([...january.slice(0, 9), ...january.slice(14)])
    await expect(space.kept.list({ ...all, cursor: 'nonsense' })).rejects.toThrow(/invalid cursor/)
    await expect(space.kept.list({ ...all, select: 'rwa' })).rejects.toThrow(/asset "rwa" not found/)
    await expect(space.kept.list({ ...all, select: 'raw', partition: '2025-02-01' })).rejects.toThrow(/does not exist before/)
  })

  test('of thousands of partitions, with gaps, wipes and second versions, is that of each of them', async () => {
    const space = await workspace()
    const hours = { type: 'hourly', start: '2023-06-01T00', timezone: 'UTC' }
    await space.declare([{ asset_key: 'hour', kind: 'asset', partitions: hours }])
    const set = partitionSet(partitionDefinition.parse(hours), { nowMs: Date.UTC(2025, 0, 20), dynamicKeys: () => [] })
    const isMade = (position: number): boolean =>
      position < 13_000 && position !== 7_777 && !(position > 11_000 && position < 11_100)
    const fact = (position: number, at: number, code_version: string): NewEvent =>
      newEvent(MaterializationReported, {
        report_id: `${position}:${at}`,
        asset_key: 'hour',
        partition_key: set.at(position),
        materialized_at: toIso(at),
        code_version,
        reported_by: 'test',
      })
    const made = Array.from({ length: 13_000 }, (_, i) => i).filter(isMade)
    const at = Date.UTC(2025, 0, 20)
    await space.tell(...made.map((position) => fact(position, at + position, 'v1')))
    await space.compactor.publish({ kind: 'base' })
    expect((await space.kept.summaries('hour'))[0]?.statuses).toMatchObject({ MATERIALIZED: made.length })
    // Some again, with other code; one of them is wiped after that.
    const again = [3, 4_999, 5_000, 12_999]
    await space.tell(...again.map((position) => fact(position, at + 50_000, 'v0')))
    await space.compactor.publish({ kind: 'base' })
    space.later(3_600_000)
    await space.wipe('hour', set.at(5_000))
    for (const each of [space.kept, space.cold(), await space.offline()]) {
      const [summary] = await each.summaries('hour')
      expect(summary?.statuses).toMatchObject({ MATERIALIZED: made.length - 4, STALE: 3 })
      const stale = await each.stale({ limit: 1_000, select: 'hour', cause: 'code_changed' })
      expect(stale.partitions.map(({ partition_key }) => partition_key)).toEqual(
        [3, 4_999, 12_999].map((position) => set.at(position)),
      )
      const missing = await each.stale({ limit: 102, select: 'hour', cause: 'never_materialized' })
      const gaps = [5_000, 7_777, ...Array.from({ length: 99 }, (_, i) => 11_001 + i), 13_000]
      expect(missing.partitions.map(({ partition_key }) => partition_key)).toEqual(gaps.map((position) => set.at(position)))
    }
  })

  test('of thousands of partitions made from others is the same whichever moments had to be read for the question', async () => {
    const space = await workspace()
    const hours = { type: 'hourly', start: '2023-06-01T00', end: '2024-10-01T00', timezone: 'UTC' }
    const made = (asset_key: string, ...from: string[]): AssetDefinitionInput => ({
      asset_key,
      kind: 'asset',
      partitions: hours,
      deps: from.map((each) => ({ asset_key: each })),
    })
    await space.declare([made('a'), made('b', 'a'), made('c', 'b')])
    const set = partitionSet(partitionDefinition.parse(hours), { nowMs: Date.UTC(2025, 0, 20), dynamicKeys: () => [] })
    const at = Date.UTC(2025, 0, 20)
    const tell = async (asset_key: string, positions: Iterable<number>, from: number): Promise<void> => {
      const events = [...positions].map((position) =>
        newEvent(MaterializationReported, {
          report_id: `${asset_key}:${position}:${from}`,
          asset_key,
          partition_key: set.at(position),
          materialized_at: toIso(from + position),
          code_version: 'v1',
          reported_by: 'test',
        }),
      )
      await space.tell(...events)
      await space.compactor.publish({ kind: 'base' })
    }
    const stale: Record<string, Set<number>> = { a: new Set(), b: new Set(), c: new Set() }
    const missing: Record<string, Set<number>> = { a: new Set(), b: new Set(), c: new Set() }
    const check = async (): Promise<void> => {
      // Each question of a process of its own, and all of them of one that is asked again and again.
      for (const ask of [async () => space.cold(), async () => await space.offline(), async () => space.kept]) {
        for (const asset of ['a', 'b', 'c']) {
          const all = [...(stale[asset] as Set<number>)].sort((x, y) => x - y)
          const [summary] = await (await ask()).summaries(asset)
          const never = missing[asset]?.size ?? 0
          expect(summary?.statuses).toMatchObject({ STALE: all.length - never, NEVER_MATERIALIZED: never })
          const page = await (await ask()).stale({ limit: 1_000, select: asset })
          expect(page.partitions.map(({ partition_key }) => partition_key)).toEqual(all.map((position) => set.at(position)))
        }
      }
    }
    const every = Array.from({ length: set.count }, (_, i) => i)
    await tell('a', every, at)
    await tell('b', every, at + 20_000)
    await tell('c', every, at + 40_000)
    await check()
    // What is made again leaves what is below it stale, and makes what it is itself fresh.
    await tell('a', [3, 4_999, 5_000, 9_000], at + 60_000)
    for (const position of [3, 4_999, 5_000, 9_000]) stale['b']?.add(position) && stale['c']?.add(position)
    await check()
    await tell('b', [3, 5_000, 7_000], at + 80_000)
    for (const position of [3, 5_000]) stale['b']?.delete(position)
    stale['c']?.add(7_000)
    await check()
    await tell('c', [3, 7_000], at + 100_000)
    for (const position of [3, 7_000]) stale['c']?.delete(position)
    await check()
    space.later(3_600_000)
    await space.wipe('c', set.at(11))
    stale['c']?.add(11)
    missing['c']?.add(11)
    await check()
  })

  test.each([
    ['in memory', false],
    ['in a file', true],
  ])(
    '[P14] of a changed definition, %s: keys that it has keep their status, others stay on record and are not counted',
    async (_, published) => {
      const space = await workspace()
      await space.declare(assets)
      for (const day of ['2025-01-01', '2025-01-02', '2025-01-03']) await space.report('raw', day)
      if (published) await space.compactor.publish({ kind: 'base' })
      expect((await space.kept.summaries('raw'))[0]).toMatchObject({ partitions: 19, statuses: { MATERIALIZED: 3 } })
      const [raw, ...others] = assets as [AssetDefinitionInput]
      await space.declare([{ ...raw, partitions: { ...days, start: '2025-01-03' } }, ...others])
      expect((await space.kept.summaries('raw'))[0]).toMatchObject({ partitions: 17, statuses: { MATERIALIZED: 1 } })
      const shown = (await space.kept.list({ ...all, select: 'raw', status: 'MATERIALIZED' })).partitions
      expect(shown.map(({ partition_key }) => partition_key)).toEqual(['2025-01-03'])
      await space.declare([{ ...raw, partitions: { ...days, start: '2024-12-30' } }, ...others])
      expect((await space.kept.summaries('raw'))[0]).toMatchObject({ partitions: 21, statuses: { MATERIALIZED: 3 } })
      await expect(space.kept.why('raw', '2024-12-29')).rejects.toThrow(/no partition 2024-12-29/)
      expect(await space.compactor.lookup(partitionStatus, 'raw', '2025-01-01')).toMatchObject({ asset_key: 'raw' })
    },
  )

  test('stays with an asset that gets another name, and with the next one, but not with a new asset of the old name', async () => {
    const space = await workspace()
    await space.declare(assets)
    await space.report('raw', '2025-01-01')
    await space.report('clean', '2025-01-01')
    await space.compactor.publish({ kind: 'base' })
    const [raw, clean, ...others] = assets as [AssetDefinitionInput, AssetDefinitionInput]
    const below = (of: string): AssetDefinitionInput => ({ ...clean, deps: [{ asset_key: of }] })
    await space.declare([{ ...raw, asset_key: 'src', renamed_from: 'raw' }, below('src'), ...others])
    await space.report('src', '2025-01-02')
    await space.declare([{ ...raw, asset_key: 'landed', renamed_from: 'src' }, below('landed'), ...others])
    await space.report('landed', '2025-01-03')
    expect((await space.kept.summaries('landed'))[0]).toMatchObject({ statuses: { MATERIALIZED: 3 } })
    expect(await space.kept.why('landed', '2025-01-01')).toMatchObject({ status: 'MATERIALIZED', is_stale: false })
    expect(await space.kept.why('clean', '2025-01-01')).toMatchObject({ status: 'MATERIALIZED', is_stale: false })
    await space.wipe('landed', '2025-01-01')
    expect(await space.kept.why('landed', '2025-01-01')).toMatchObject({ status: 'NEVER_MATERIALIZED' })
    expect(await (await space.offline()).summaries('landed')).toEqual(await space.kept.summaries('landed'))
    await space.declare([raw, { ...raw, asset_key: 'landed', renamed_from: 'raw' }, below('landed'), ...others])
    expect((await space.kept.summaries('landed'))[0]).toMatchObject({ statuses: { MATERIALIZED: 1 } })
  })

  test('follows a dynamic set in which one key took the place of another', async () => {
    const space = await workspace()
    await space.declare(assets)
    await space.add('a', 'b')
    await space.report('shop', 'b')
    const made = async (): Promise<string[]> =>
      (await space.kept.list({ ...all, select: 'shop', status: 'MATERIALIZED' })).partitions.map((each) => each.partition_key)
    expect(await made()).toEqual(['b'])
    // As many keys as before, and as many facts about them, at other positions.
    await space.tell(newEvent(PartitionKeysRemoved, { request_id: 'gone', set_name: 'shops', keys: ['a'], changed_by: 'ada' }))
    await space.add('z')
    expect(await made()).toEqual(['b'])
    expect((await space.kept.summaries('shop'))[0]).toMatchObject({ first: 'b', last: 'z', statuses: { MATERIALIZED: 1 } })
  })

  test('of two materializations of one millisecond is that of the one the table keeps', async () => {
    const space = await workspace()
    await space.declare(assets)
    const at = Date.UTC(2025, 0, 20, 13)
    await space.report('raw', '2025-01-05', at)
    await space.compactor.publish({ kind: 'base' })
    await space.kept.summaries('raw')
    await space.tell(
      newEvent(MaterializationReported, {
        report_id: 'tie',
        asset_key: 'raw',
        partition_key: '2025-01-05',
        materialized_at: toIso(at),
        code_version: 'v0',
        reported_by: 'test',
      }),
    )
    const row = await space.compactor.lookup(partitionStatus, 'raw', '2025-01-05')
    const expected = row?.last_materialization_code_version === 'v1' ? [] : ['code_changed']
    expect((await space.kept.why('raw', '2025-01-05')).causes).toEqual(expected)
    expect((await space.cold().why('raw', '2025-01-05')).causes).toEqual(expected)
  })
})
