import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type AssetDefinitionInput, projectManifest } from '../../contract/project-manifest.ts'
import { ulidSource } from '../../lib/ulid.ts'
import { Story } from '../../testing/histories/story.ts'
import { assetDefinitions } from './asset-definitions.table.ts'
import { AssetsDefined } from './assets-defined.event.ts'
import { assetsDefined, graphOf } from './definitions.ts'
import { pools } from './pools.table.ts'

type Declared = Record<string, Partial<AssetDefinitionInput>>

/** A workspace into which projects are loaded one after the other. */
class Workspace {
  readonly story = new Story()
  #minted = 0

  load(assets: Declared, poolSizes: Record<string, number> = {}, now = Number.MAX_SAFE_INTEGER) {
    const declared = Object.entries(assets).map(([asset_key, rest]) => ({ asset_key, kind: 'asset' as const, ...rest }))
    const manifest = projectManifest.parse({ project: 'shop', assets: declared, pools: poolSizes })
    const known = this.story.rows(assetDefinitions)
    const mintId = () => `id-${this.#minted++}`
    const parts = assetsDefined({ manifest, known, knownPools: this.story.rows(pools), now, mintId })
    for (const part of parts) expect(this.story.tell(AssetsDefined, part)).toEqual({ kind: 'applied' })
    return parts
  }

  get graph() {
    return graphOf(this.story.rows(assetDefinitions))
  }

  /** Key and id of every asset there is. */
  get ids(): Record<string, string> {
    const live = this.story.rows(assetDefinitions).filter((row) => !row.removed)
    return Object.fromEntries(live.map((row) => [row.asset_key, row.asset_id]))
  }
}

describe('loading a project', () => {
  test('records every asset, and nothing when it is loaded again in another order', () => {
    const workspace = new Workspace()
    const [part] = workspace.load({ orders: { description: 'All of them.' }, revenue: {} })
    expect(part?.assets).toMatchObject([
      { asset_key: 'orders', asset_id: 'id-0' },
      { asset_key: 'revenue', asset_id: 'id-1' },
    ])
    expect(workspace.load({ revenue: {}, orders: { description: 'All of them.' } })).toEqual([])
    expect([...workspace.graph.graph.assets.keys()]).toEqual(['orders', 'revenue'])
    expect(workspace.graph.version).toBe(part?.graph_version)
  })

  test('records only what changed; the version is that of the whole graph', () => {
    const workspace = new Workspace()
    const [before] = workspace.load({ orders: {}, revenue: {} })
    const [part] = workspace.load({ orders: {}, revenue: { code_version: '2' } })
    expect(part?.assets).toMatchObject([{ asset_key: 'revenue', asset_id: 'id-1', code_version: '2' }])
    expect(part?.graph_version).not.toBe(before?.graph_version)
    expect(workspace.graph.version).toBe(part?.graph_version)
    const [back] = workspace.load({ orders: {}, revenue: {} })
    expect(back?.graph_version).toBe(before?.graph_version)
    expect(workspace.graph.version).toBe(before?.graph_version)
  })

  test('marks assets that are gone; one that comes back is the same as before', () => {
    const workspace = new Workspace()
    workspace.load({ orders: {}, revenue: {} })
    const [part] = workspace.load({ orders: {} })
    expect(part?.assets).toMatchObject([{ asset_key: 'revenue', removed: true }])
    expect([...workspace.graph.graph.assets.keys()]).toEqual(['orders'])
    workspace.load({ orders: {}, revenue: {} })
    expect(workspace.ids).toEqual({ orders: 'id-0', revenue: 'id-1' })
  })

  test('hands the id of a renamed asset on to its new key', () => {
    const workspace = new Workspace()
    workspace.load({ orders: {} })
    const renamed = { sales: { renamed_from: 'orders' } }
    workspace.load(renamed)
    expect(workspace.ids).toEqual({ sales: 'id-0' })
    expect(workspace.load(renamed)).toEqual([])
    expect(workspace.story.row(assetDefinitions, 'orders')).toMatchObject({ removed: true })
    expect(workspace.story.row(assetDefinitions, 'sales')).toMatchObject({ renamed_from: 'orders' })
  })

  test('gives no two assets the same id: a new asset under an old name is another asset', () => {
    const workspace = new Workspace()
    workspace.load({ orders: {} })
    workspace.load({ sales: { renamed_from: 'orders' } })
    workspace.load({ sales: { renamed_from: 'orders' }, orders: {} })
    expect(workspace.ids).toEqual({ sales: 'id-0', orders: 'id-1' })
    workspace.load({ sales: {}, orders: {}, more: { renamed_from: 'orders' } })
    expect(workspace.ids).toEqual({ sales: 'id-0', orders: 'id-1', more: 'id-2' })
  })

  test('records pools with it, and only when they changed', () => {
    const workspace = new Workspace()
    expect(workspace.load({ orders: {} }, { db: 3, api: 1 })[0]?.pools).toEqual([
      { pool: 'db', slots: 3 },
      { pool: 'api', slots: 1 },
    ])
    expect(workspace.load({ orders: {} }, { api: 1, db: 3 })).toEqual([])
    const parts = workspace.load({ orders: {} }, { db: 4 })
    expect(parts).toMatchObject([
      {
        assets: [],
        pools: [
          { pool: 'db', slots: 4 },
          { pool: 'api', slots: null },
        ],
      },
    ])
    expect(workspace.story.rows(pools)).toMatchObject([
      { pool: 'api', slots: null },
      { pool: 'db', slots: 4 },
    ])
    expect(workspace.load({ orders: {} }, { db: 4 })).toEqual([])
  })

  test('of many or large assets takes several events, each below the limit', () => {
    const many = Object.fromEntries(Array.from({ length: 4_001 }, (_, i) => [`a${i}`, {}]))
    expect(new Workspace().load(many).map(({ assets }) => assets.length)).toEqual([2_000, 2_000, 1])
    const large = Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`a${i}`, { description: 'ä'.repeat(16_000) }]))
    const parts = new Workspace().load(large)
    expect(parts.length).toBeGreaterThan(3)
    for (const part of parts) expect(Buffer.byteLength(JSON.stringify(part))).toBeLessThan(1 << 20)
  })

  test('[P19] counts, although a process whose clock was set back gave an id of the future to the one before', () => {
    const now = Date.UTC(2025, 0, 1)
    const manifest = projectManifest.parse({ project: 'shop', assets: [{ asset_key: 'a', kind: 'asset' }] })
    const declared = { asset_key: 'a', asset_id: 'id', definition: {}, renamed_from: null, removed: false, clock_turn: 1 }
    const turn = (row_version: string) =>
      assetsDefined({
        manifest,
        known: [{ ...declared, defined_at: now - 1, row_version }],
        knownPools: [],
        now,
        mintId: () => 'id',
      })[0]?.clock_turn
    const idAt = (ms: number) =>
      ulidSource(
        () => ms,
        (length) => new Uint8Array(length),
      )()
    expect([turn(idAt(now - 1)), turn(idAt(now + 1))]).toEqual([1, 2])
  })

  test('of a hundred thousand assets takes seconds, not minutes', () => {
    const assets = Object.fromEntries(Array.from({ length: 100_000 }, (_, i) => [`warehouse/table_${i}`, {}]))
    const declared = Object.keys(assets).map((asset_key) => ({ asset_key, kind: 'asset' as const }))
    const manifest = projectManifest.parse({ project: 'shop', assets: declared })
    let minted = 0
    const recorded = { defined_at: 0, clock_turn: null, row_version: '00000000000000000000000000' }
    const parts = assetsDefined({ manifest, known: [], knownPools: [], now: 0, mintId: () => `id-${minted++}` })
    const known = parts
      .flatMap((part) => part.assets)
      .map((asset) => ({ ...asset, renamed_from: null, removed: false, ...recorded }))
    expect(assetsDefined({ manifest, known, knownPools: [], now: 0, mintId: () => 'nobody' })).toEqual([])
    expect(graphOf(known).version).toBe(parts[0]?.graph_version)
  })

  test('leaves what was declared last, whatever was loaded before', () => {
    const some = fc.dictionary(fc.constantFrom('a', 'b', 'c'), fc.record({ group: fc.constantFrom('x', 'y') }), {
      noNullPrototype: true,
    })
    const property = fc.property(fc.array(some, { minLength: 1, maxLength: 5 }), (loads) => {
      const workspace = new Workspace()
      for (const load of loads) workspace.load(load)
      const last = loads.at(-1) as Declared
      const groups = [...workspace.graph.graph.assets].map(([key, { group }]) => [key, { group }])
      expect(Object.fromEntries(groups)).toEqual(last)
      expect(workspace.load(last)).toEqual([])
      expect(new Set(Object.values(workspace.ids)).size).toBe(Object.keys(last).length)
    })
    fc.assert(property, { numRuns: 30 })
  })
})

test('a graph recorded by another version of Servo is read with today’s defaults, and what is no asset is left out', () => {
  const rows = [
    { definition: { asset_key: 'orders', kind: 'asset' }, removed: false },
    { definition: { nonsense: true }, removed: false },
    { definition: { asset_key: 'gone', kind: 'asset' }, removed: true },
  ]
  expect([...graphOf(rows).graph.assets.values()]).toMatchObject([{ asset_key: 'orders', group: 'default' }])
})
