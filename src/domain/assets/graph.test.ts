import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { assetDefinition } from '../../contract/project-manifest.ts'
import { AssetGraph } from './graph.ts'

const asset = (asset_key: string, ...upstream: string[]) =>
  assetDefinition.parse({ asset_key, kind: 'asset', deps: upstream.map((key) => ({ asset_key: key })) })

const graphOf = (edges: Record<string, readonly string[]>) =>
  new AssetGraph(Object.entries(edges).map(([key, upstream]) => asset(key, ...upstream)))

describe('a graph', () => {
  test('knows what each asset is made from and what is made of it, whether loaded or only waited for', () => {
    const inputs = { orders: { asset_key: 'orders' }, again: { asset_key: 'orders' } }
    const revenue = assetDefinition.parse({ asset_key: 'revenue', kind: 'asset', inputs, deps: [{ asset_key: 'rates' }] })
    const graph = new AssetGraph([revenue, asset('orders'), asset('rates')])
    expect(graph.upstream('revenue')).toEqual(['orders', 'rates'])
    expect(graph.downstream('orders')).toEqual(['revenue'])
    expect(graph.upstream('orders')).toEqual([])
    expect(graph.problems).toEqual([])
  })

  test('puts every asset after those it is made from, in the same order however it was declared', () => {
    const edges = fc
      .array(fc.array(fc.nat(), { maxLength: 4 }), { maxLength: 30 })
      .map((rows) => rows.map((row, i) => asset(`a${i}`, ...(i === 0 ? [] : row.map((n) => `a${n % i}`)))))
    const property = fc.property(
      edges.chain((it) => fc.tuple(fc.constant(it), fc.shuffledSubarray(it, { minLength: it.length }))),
      ([declared, shuffled]) => {
        const graph = new AssetGraph(declared)
        expect(graph.problems).toEqual([])
        const place = new Map(graph.order.map((key, index) => [key, index]))
        expect(place.size).toBe(declared.length)
        for (const key of graph.order)
          for (const upstream of graph.upstream(key)) expect(place.get(upstream)).toBeLessThan(place.get(key)!)
        expect(new AssetGraph(shuffled).order).toEqual(graph.order)
      },
    )
    fc.assert(property)
  })

  test('of 100,000 assets in one chain is built without deep recursion, and quickly', () => {
    const definition = asset('a')
    const chain = Array.from({ length: 100_000 }, (_, i) => ({
      ...definition,
      asset_key: `a${i}`,
      deps: i === 0 ? [] : [{ asset_key: `a${i - 1}` }],
    }))
    const graph = new AssetGraph(chain)
    expect(graph.order).toHaveLength(100_000)
    expect(graph.order[99_999]).toBe('a99999')
  })
})

describe('what is wrong with a graph is told with the whole path', () => {
  test('a cycle', () => {
    const graph = graphOf({ a: ['c'], b: ['a'], c: ['b'], d: ['a'] })
    expect(graph.problems).toMatchObject([
      { code: 'cycle', path: ['a', 'b', 'c', 'a'], message: 'these assets depend on each other: a → b → c → a' },
    ])
    expect(graph.order).toHaveLength(4)
  })

  test('a long cycle is shortened where people read it, not where programs do', () => {
    const keys = Array.from({ length: 100 }, (_, i) => `a${i}`)
    const [problem] = graphOf(Object.fromEntries(keys.map((key, i) => [key, [keys[(i + 99) % 100]!]]))).problems
    expect(problem?.path).toHaveLength(101)
    expect(problem?.message).toMatch(/ → \(89 more\) → a0$/)
  })

  test('an asset made from itself, unless from another of its own partitions', () => {
    expect(graphOf({ a: ['a'] }).problems).toMatchObject([{ code: 'cycle', path: ['a', 'a'] }])
    const yesterday = { asset_key: 'a', mapping: { type: 'time_window', start_offset: -1 } }
    const daily = { asset_key: 'a', kind: 'asset', partitions: { type: 'daily' }, inputs: { yesterday } }
    expect(new AssetGraph([assetDefinition.parse(daily)]).problems).toEqual([])
  })

  test('a dependency that nobody declares', () => {
    const graph = graphOf({ revenue: ['ordrs'], orders: [] })
    expect(graph.problems).toMatchObject([{ code: 'missing_dependency', path: ['revenue', 'ordrs'] }])
    expect(graph.upstream('revenue')).toEqual([])
  })

  test('a key declared twice', () => {
    const first = { ...asset('orders'), file: 'assets/orders.ts', line: 3 }
    const graph = new AssetGraph([first, { ...asset('orders'), file: 'assets/copy.ts', line: 9 }])
    expect(graph.problems).toMatchObject([
      { code: 'duplicate_key', file: 'assets/copy.ts', message: 'orders is declared twice (first in assets/orders.ts:3)' },
    ])
  })

  test('many cycles are not all told: repairing one often repairs others', () => {
    const keys = Array.from({ length: 30 }, (_, i) => `a${i}`)
    expect(graphOf(Object.fromEntries(keys.map((key) => [key, keys]))).problems).toHaveLength(30 + 20)
  })
})
