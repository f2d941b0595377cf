import fs from 'node:fs'
import path from 'node:path'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type AssetDefinitionInput, assetDefinition } from '../../contract/project-manifest.ts'
import { AssetGraph } from '../assets/graph.ts'
import { parseSelection, type SelectionTree } from './parser.ts'
import { select } from './selection.ts'

interface Table {
  graph: Record<string, Omit<AssetDefinitionInput, 'asset_key' | 'kind' | 'deps'> & { deps: string[] }>
  valid: { expr: string; selected: string[] }[]
  invalid: string[]
}
const file = path.resolve(import.meta.dirname, '../../../../shared/tables/asset_selection.json')
const table: Table | undefined = fs.existsSync(file) ? JSON.parse(fs.readFileSync(file, 'utf8')) : undefined
if (table === undefined) console.warn(`${file} is not there: what Dagster selects is not compared.`)

const define = (key: string, deps: readonly string[] = [], rest: Partial<AssetDefinitionInput> = {}) =>
  assetDefinition.parse({ asset_key: key, kind: 'asset', deps: deps.map((asset_key) => ({ asset_key })), ...rest })

describe('what Dagster has', () => {
  test.skipIf(table === undefined)('[shared tables] is selected by the same texts', () => {
    const { graph, valid } = table as Table
    const assets = new AssetGraph(Object.entries(graph).map(([key, { deps, ...rest }]) => define(key, deps, rest)))
    const selected = valid.map(({ expr }) => ({ expr, selected: [...select(parseSelection(expr), assets)].sort() }))
    expect(selected).toEqual(valid)
  })

  test.skipIf(table === undefined)('[shared tables] is refused in the same texts', () => {
    const accepted = (table as Table).invalid.filter((text) => {
      try {
        return parseSelection(text)
      } catch {
        return false
      }
    })
    expect(accepted).toEqual([])
  })
})

const graph = new AssetGraph([
  define('raw/orders', [], { kind: 'source', group: 'raw' }),
  define('orders', ['raw/orders'], { kinds: ['duckdb'], tags: { stage: 'silver', private: '' }, owners: ['ada'] }),
  define('my-rates', [], { group: 'raw', tags: { constructor: 'x' } }),
  define('mart/revenue', ['orders', 'my-rates'], { group: 'mart/paid', kinds: ['duckdb', 'python'] }),
  define('mart/report', ['mart/revenue'], { group: 'mart' }),
])
const selected = (text: string) => [...select(parseSelection(text), graph)].sort()

describe('a selection', () => {
  test.each([
    ['mart/revenue', ['mart/revenue']],
    ['my-rates', ['my-rates']],
    ['mart/*', ['mart/report', 'mart/revenue']],
    ['orders+', ['mart/report', 'mart/revenue', 'orders']],
    ['1+mart/revenue', ['mart/revenue', 'my-rates', 'orders']],
    ['nothing/of/that/name', []],
  ])('that is only an asset key selects by it: %s', (text, expected) => {
    expect(selected(text)).toEqual(expected)
  })

  test.each([
    ['kind:<null>', ['mart/report', 'my-rates', 'raw/orders']],
    ['tag:stage=<null>', []],
    ['tag:private=<null>', ['orders']],
    ['tag:<null>', []],
    ['tag:constructor', []],
    ['group:<null>', []],
    ['group:""', []],
    ['group:mart', ['mart/report']],
    ['group:"mart*"', ['mart/report', 'mart/revenue']],
    ['owner:"a*"', []],
    ['key:**', ['mart/report', 'mart/revenue', 'my-rates', 'orders', 'raw/orders']],
    ['key:"*r*v*e"', ['mart/revenue']],
    ['group:sensor', []],
    ['not not key:orders', ['orders']],
    ['not(key:"*r*")', []],
    ['1 + key : orders', ['orders', 'raw/orders']],
    ['key:And', []],
  ])('%s', (text, expected) => {
    expect(selected(text)).toEqual(expected)
  })

  test('of sources leads to what is made of them, and the roots are what can be made first', () => {
    expect(selected('kind:<null> and group:raw')).toEqual(['my-rates', 'raw/orders'])
    expect(selected('key:raw/orders+1')).toEqual(['orders', 'raw/orders'])
    expect(selected('roots(*)')).toEqual(['my-rates', 'orders'])
    expect(selected('sinks(*)')).toEqual(['mart/report'])
  })

  test('tells what we make from what others do', () => {
    expect(selected('is:external')).toEqual(['raw/orders'])
    expect(selected('is : "materializable" and group:raw')).toEqual(['my-rates'])
    expect(selected('is:external+1')).toEqual(['orders', 'raw/orders'])
    expect(() => parseSelection('is:stale')).toThrow('expected external or materializable, found stale')
  })

  test.each([
    '',
    ' ',
    '*+',
    '**key:a',
    '**',
    'Not',
    'owner',
    'status',
    'status+',
    'key:a key:b',
    'key:status',
    'key:job',
    'key:<null>',
    'key:1',
    'key:a\\b',
    'key:"a\\b"',
    'key:"a\nb"',
    'owner:ada@example.com',
    'group:public*',
    'status:missing',
    'is',
    'is:',
    'is:<null>',
    'is:External',
    'key:is',
    'not_materialized_in_hours:3',
    'roots(key:a,key:b)',
    'notkey:a',
    '*and key:a',
    '1+2+key:a',
    'key:a\u00a0and key:b',
    'KEY:a',
    'mart/revenue or mart/report',
    'key:a+b',
  ])('cannot be %j', (text) => {
    expect(() => parseSelection(text)).toThrow(expect.objectContaining({ kind: 'invalid', code: 'bad_selection' }))
  })

  test('that cannot be read shows where, and what belongs there', () => {
    expect(() => parseSelection('key:a and (owner: or kind:b)')).toThrow(
      [
        'the selection cannot be read at position 19: expected a value, found or',
        '  key:a and (owner: or kind:b)',
        '                    ^',
      ].join('\n'),
    )
  })

  test.each([
    ['grp:mart', 'Did you mean group:?'],
    ['key:a and onwer:ana', 'Did you mean owner:?'],
    ['KEY:a', 'Did you mean key:?'],
    ['department:mart', 'An asset key follows key: here, as in key:"department".'],
  ])('%j is refused with the hint %j', (text, hint) => {
    expect(() => parseSelection(text)).toThrow(expect.objectContaining({ hint }))
  })

  test('that cannot be read is shown in part when it is long, and never moves the cursor of a terminal', () => {
    const long = `${'key:a or '.repeat(50)}\u001b[31m ${'or key:a'.repeat(50)}`
    const message = (() => {
      try {
        return parseSelection(long)
      } catch (error) {
        return (error as Error).message
      }
    })() as string
    const [, line = '', caret = ''] = message.split('\n')
    expect(line.length).toBeLessThan(80)
    expect(line).not.toContain('\u001b')
    expect(caret.indexOf('^')).toBe(line.indexOf('[31m') - 1)
  })

  test('may be long but not deep', () => {
    const keys = Array.from({ length: 10_000 }, (_, i) => `key:a${i}`)
    expect(parseSelection(keys.join(' or '))).toMatchObject({ op: 'or', of: { length: 10_000 } })
    expect(() => parseSelection('('.repeat(100_000))).toThrow('at most 200 levels of nesting')
    expect(() => parseSelection('not '.repeat(100_000))).toThrow('at most 200 levels of nesting')
  })

  test('with many stars on a text made for that is evaluated at once', () => {
    const long = new AssetGraph([define('a'.repeat(255))])
    expect(select(parseSelection(`key:"${'*a'.repeat(200)}*b"`), long).size).toBe(0)
  })
})

const text = fc.stringMatching(/^[a-z*/ @.<>=+()-]{0,6}$/)
const word = fc.constantFrom('orders', 'a', 'mart/revenue', 'x_1', 'And')
const depth = fc.constantFrom(0, 1, 2, 7, Number.POSITIVE_INFINITY)
const { tree } = fc.letrec<{ tree: SelectionTree; inner: SelectionTree }>((tie) => ({
  tree: fc.oneof({ maxDepth: 4 }, tie('inner'), fc.constant<SelectionTree>({ op: 'all' })),
  inner: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    fc.record({ op: fc.constant('key' as const), pattern: fc.oneof(text, word) }),
    fc.record({
      op: fc.constantFrom('owner' as const, 'group' as const, 'kind' as const),
      value: fc.oneof(text, word, fc.constant(null)),
    }),
    fc.record({ op: fc.constant('is' as const), value: fc.constantFrom('external' as const, 'materializable' as const) }),
    fc.record({ op: fc.constant('tag' as const), name: fc.oneof(text, fc.constant(null)), value: text }),
    fc.record({ op: fc.constantFrom('not' as const, 'roots' as const, 'sinks' as const), of: tie('tree') }),
    fc.record({
      op: fc.constantFrom('and' as const, 'or' as const),
      of: fc.array(tie('tree'), { minLength: 2, maxLength: 3 }),
    }),
    fc.record({ op: fc.constant('around' as const), of: tie('tree'), up: depth, down: depth }),
  ),
}))

/** The tree as text, with parentheses around every operand. */
function write(selection: SelectionTree): string {
  const quoted = (value: string | null) => (value === null ? '<null>' : /^(orders|a|x_1)$/.test(value) ? value : `"${value}"`)
  const steps = (depth: number) => (depth === Number.POSITIVE_INFINITY ? '' : depth)
  switch (selection.op) {
    case 'all':
      return '*'
    case 'key':
      return `key:${quoted(selection.pattern)}`
    case 'tag':
      return `tag:${quoted(selection.name)}${selection.value === '' ? '' : `=${quoted(selection.value)}`}`
    case 'not':
      return `not (${write(selection.of)})`
    case 'roots':
    case 'sinks':
      return `${selection.op}(${write(selection.of)})`
    case 'and':
    case 'or':
      return selection.of.map((each) => `(${write(each)})`).join(` ${selection.op} `)
    case 'around': {
      const { of, up, down } = selection
      return `${up === 0 ? '' : `${steps(up)}+`}(${write(of)})${down === 0 ? '' : `+${steps(down)}`}`
    }
    default:
      return `${selection.op}:${quoted(selection.value)}`
  }
}

/** No steps in either direction is the asset itself. */
const plain = (selection: SelectionTree): SelectionTree => {
  switch (selection.op) {
    case 'and':
    case 'or':
      return { ...selection, of: selection.of.map(plain) }
    case 'not':
    case 'roots':
    case 'sinks':
      return { ...selection, of: plain(selection.of) }
    case 'around':
      return selection.up === 0 && selection.down === 0 ? plain(selection.of) : { ...selection, of: plain(selection.of) }
    default:
      return selection
  }
}

const edges = fc.array(fc.array(fc.nat(), { maxLength: 3 }), { minLength: 1, maxLength: 8 })
const someGraph = edges.map((rows) => {
  const names = ['orders', 'a', 'mart/revenue', 'x_1', 'b/c', 'b/d', 'z', 'zz']
  return new AssetGraph(
    rows.map((row, i) =>
      define(names[i]!, i === 0 ? [] : row.map((n) => names[n % i]!), { group: i % 2 ? 'a' : 'orders', kinds: ['a'] }),
    ),
  )
})

describe('for any selections', () => {
  test('what is written is what is read', () => {
    const property = fc.property(tree, (selection) => {
      expect(parseSelection(write(selection))).toEqual(plain(selection))
    })
    fc.assert(property)
  })

  test('and, or and not mean what they mean for sets', () => {
    const property = fc.property(someGraph, tree, tree, (assets, one, other) => {
      const [a, b] = [select(one, assets), select(other, assets)]
      const read = (text: string) => select(parseSelection(text), assets)
      const [x, y] = [`(${write(one)})`, `(${write(other)})`]
      expect(read(`${x} and ${y}`)).toEqual(a.intersection(b))
      expect(read(`${x} or ${y}`)).toEqual(a.union(b))
      expect(read(`not ${x}`)).toEqual(new Set(assets.assets.keys()).difference(a))
      expect(read(`not ${x} and ${y} or ${x}`)).toEqual(b.difference(a).union(a))
    })
    fc.assert(property)
  })

  test('steps add up: two steps are a step from the assets one step away', () => {
    const property = fc.property(someGraph, tree, (assets, of) => {
      const once = (of: SelectionTree): SelectionTree => ({ op: 'around', of, up: 0, down: 1 })
      expect(select({ op: 'around', of, up: 0, down: 2 }, assets)).toEqual(select(once(once(of)), assets))
    })
    fc.assert(property)
  })
})
