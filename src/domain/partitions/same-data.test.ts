import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type AssetDefinitionInput, assetDefinition } from '../../contract/project-manifest.ts'
import { graphOf } from '../assets/definitions.ts'
import { GraphPartitions } from '../assets/graph-partitions.ts'
import { explain } from './explain.ts'
import { VersionLog } from './same-data.ts'
import { CAUSES, Staleness } from './staleness.ts'
import { StatusColumns } from './status-columns.ts'

const seed = Number(process.env['SEED'] ?? Date.now())

interface Made {
  readonly asset: string
  readonly position: number
  readonly at: number
  /** When it read its inputs. */
  readonly inputsAt?: number
  readonly version?: string | null
}

type Asset = Omit<AssetDefinitionInput, 'kind' | 'code_version'>

/** Assets of which these materializations are known, and versions only once they are wanted. */
function world(assets: readonly Asset[], made: readonly Made[]) {
  const definitions = assets.map((each) => assetDefinition.parse({ kind: 'asset', code_version: 'v1', ...each }))
  const graph = graphOf(definitions.map((definition) => ({ definition, removed: false })))
  const partitions = new GraphPartitions(graph.mappings, { nowMs: Date.UTC(2025, 2, 1), dynamicKeys: () => [] })
  const columns = new Map(assets.map(({ asset_key }) => [asset_key, new StatusColumns(partitions.of(asset_key))]))
  const columnsOf = (key: string): StatusColumns => columns.get(key) as StatusColumns
  for (const { asset, position, at, inputsAt = at, version = null } of made) {
    const own = columnsOf(asset)
    own.made(position, at, inputsAt, own.codeOf('v1'), version !== null)
  }
  const staleness = new Staleness({ graph, partitions, columns: columnsOf, nowMs: 0 })
  const loaded: string[] = []
  const settle = (key: string): void => {
    const asset = staleness.asset(key)
    for (;;) {
      staleness.workOut(asset, { from: 0, to: asset.set.count - 1 })
      if (staleness.wanted === undefined) return
      const versions = staleness.wanted.versions.map((wanted) => {
        loaded.push(wanted)
        const log = new VersionLog(columnsOf(wanted))
        for (const { asset: of, position, at, version = null } of made)
          if (of === wanted) log.add(position, at, log.versionOf(version))
        return [wanted, log.read()] as const
      })
      staleness.learn({ versions: new Map(versions), made: new Map() })
    }
  }
  return {
    loaded,
    /** The partitions of an asset for which upstream has other data than was read. */
    changed(key: string): number[] {
      settle(key)
      const asset = staleness.asset(key)
      return Array.from({ length: asset.set.count }, (_, at) => at).filter(
        (at) => staleness.causes(asset, at) & CAUSES.upstream_changed,
      )
    },
    stale(key: string): number[] {
      settle(key)
      const asset = staleness.asset(key)
      return [...staleness.staleIn(asset, { from: 0, to: asset.set.count - 1 })]
    },
    needs: (key: string, position: number): number[] =>
      staleness
        .asset(key)
        .links.flatMap((link) =>
          link.needed(position).spans.flatMap(({ from, to }) => Array.from({ length: to - from + 1 }, (_, i) => from + i)),
        ),
    why(key: string, position: number) {
      settle(key)
      return explain(key, position, { staleness, graph, partitions, definedAt: () => null })
    },
  }
}

const days = { type: 'daily', start: '2025-01-01', end: '2025-01-22', timezone: 'UTC' }
const weeks = { type: 'weekly', start: '2025-01-01', end: '2025-01-22', timezone: 'UTC' }
const shop: Asset[] = [
  { asset_key: 'up', partitions: days },
  { asset_key: 'same', partitions: days, deps: [{ asset_key: 'up' }] },
  { asset_key: 'week', partitions: weeks, deps: [{ asset_key: 'up' }] },
  { asset_key: 'all', deps: [{ asset_key: 'up', mapping: { type: 'all' } }] },
]

/** What the rule says, one partition at a time: everything that may have been read has the version that there is now. */
function isOther(made: readonly Made[], position: number, inputsAt: number, madeAt: number): boolean {
  const all = made.filter((each) => each.asset === 'up' && each.position === position).sort((a, b) => a.at - b.at)
  const now = all.at(-1)
  if (now === undefined || now.at <= inputsAt) return false
  const first = all.findLastIndex(({ at }) => at <= inputsAt)
  const read = all.slice(Math.max(0, first)).filter(({ at }) => at <= madeAt)
  return first < 0 || now.version === null || read.some(({ version }) => version !== now.version)
}

describe('data that was made again', () => {
  test(`[P16] is other data exactly if its version is not the one that was read (seed ${seed})`, () => {
    // Three days, in three weeks, so that they are made again and again.
    const position = fc.constantFrom(0, 8, 20)
    const upstream = fc.record({ position, version: fc.constantFrom('A', 'A', 'B', null) })
    const below = fc.record({ asset: fc.constantFrom('same', 'week', 'all'), position, at: fc.nat(60), took: fc.nat(15) })
    fc.assert(
      fc.property(fc.array(upstream, { maxLength: 20 }), fc.array(below, { maxLength: 12 }), (ups, downs) => {
        const all = Array.from({ length: 21 }, (_, i) => ({ asset: 'up', position: i, at: 1, version: 'A' }))
        // Each at a time of its own.
        const again = ups.map(({ position: at, version }, i) => ({ asset: 'up', position: at, at: 3 * (i + 1), version }))
        const made = new Map<string, Made>()
        for (const { asset, position: at, at: begun, took } of downs) {
          const place = asset === 'all' ? 0 : asset === 'week' ? Math.floor(at / 7) : at
          made.set(`${asset} ${place}`, { asset, position: place, at: 2 + begun + took, inputsAt: 2 + begun })
        }
        const facts = [...all, ...again, ...made.values()]
        const found = world(shop, facts)
        for (const key of ['same', 'week', 'all']) {
          const own = [...made.values()].filter(({ asset }) => asset === key)
          const others = (each: Made): number[] =>
            found.needs(key, each.position).filter((at) => isOther(facts, at, each.inputsAt ?? 0, each.at))
          const expected = own.filter((each) => others(each).length > 0).map((each) => each.position)
          expect(found.changed(key)).toEqual(expected.sort((a, b) => a - b))
          const isMade = new Set(own.map((each) => each.position))
          expect(found.stale(key).filter((at) => isMade.has(at))).toEqual(expected)
          for (const each of own) {
            const blamed = found.why(key, each.position).filter(({ cause }) => cause === 'upstream_changed')
            expect(blamed.map(({ upstream: above }) => above?.count ?? 0)).toEqual(
              others(each).length === 0 ? [] : [others(each).length],
            )
          }
        }
      }),
      { seed, numRuns: 300 },
    )
  })

  test('[P16] of an asset that is always new is other data', () => {
    const made = [
      { asset: 'up', position: 0, at: 1, version: 'A' },
      { asset: 'same', position: 0, at: 2 },
      { asset: 'up', position: 0, at: 3, version: 'A' },
    ]
    expect(world(shop, made).changed('same')).toEqual([])
    const [up, ...others] = shop as [Asset]
    const always = world([{ ...up, policies: { always_new: true } }, ...others], made)
    expect(always.changed('same')).toEqual([0])
    expect(always.loaded).toEqual([])
  })

  test('[P16] versions are looked at only where something is newer and has one', () => {
    const fresh = world(shop, [
      { asset: 'up', position: 0, at: 1, version: 'A' },
      { asset: 'same', position: 0, at: 2 },
    ])
    expect([fresh.changed('same'), fresh.loaded]).toEqual([[], []])
    const unversioned = world(shop, [
      { asset: 'up', position: 0, at: 3 },
      { asset: 'same', position: 0, at: 2 },
    ])
    expect([unversioned.changed('same'), unversioned.loaded]).toEqual([[0], []])
  })

  test('[P16] that came in the same millisecond as other data counts as other data', () => {
    const made = (version: string) => [
      { asset: 'up', position: 0, at: 1, version: 'A' },
      { asset: 'same', position: 0, at: 2 },
      { asset: 'up', position: 0, at: 3, version: 'A' },
      { asset: 'up', position: 0, at: 3, version },
    ]
    expect(world(shop, made('A')).changed('same')).toEqual([])
    expect(world(shop, made('B')).changed('same')).toEqual([0])
  })

  test.each([1, 100, 100_000])(
    '[P16] is found among %i partitions, made from each other one by one or all at once',
    (count) => {
      const keys = { type: 'keys', keys: Array.from({ length: count }, (_, i) => `k${i}`) }
      const assets: Asset[] = [
        { asset_key: 'up', partitions: keys },
        { asset_key: 'same', partitions: keys, deps: [{ asset_key: 'up' }] },
        { asset_key: 'all', deps: [{ asset_key: 'up', mapping: { type: 'all' } }] },
        { asset_key: 'each', partitions: keys, deps: [{ asset_key: 'up', mapping: { type: 'all' } }] },
      ]
      const every = Array.from({ length: count }, (_, position) => position)
      const up = (at: number, version: string): Made[] => every.map((position) => ({ asset: 'up', position, at, version }))
      const below = ['same', 'each'].flatMap((asset) => every.map((position) => ({ asset, position, at: 2 })))
      const made = [...up(1, 'A'), { asset: 'all', position: 0, at: 2 }, ...below]
      // Everything was something else for a while, and is what it was.
      const back = world(assets, [...made, ...up(3, 'B'), ...up(4, 'A')])
      for (const key of ['same', 'all', 'each']) expect(back.stale(key)).toEqual([])
      const last = { asset: 'up', position: count - 1, at: 5, version: 'B' }
      const other = world(assets, [...made, ...up(3, 'B'), ...up(4, 'A'), last])
      expect(other.changed('same')).toEqual([count - 1])
      expect(other.why('all', 0)).toMatchObject([
        { cause: 'upstream_changed', upstream: { count: 1, partition_keys: [`k${count - 1}`] }, since: 5 },
      ])
    },
  )
})
