import { describe, expect, test } from 'vitest'
import type { GraphView } from '../api/asset-contract.ts'
import { dotText, mermaidText, treeLines } from './asset-graph.ts'

/** Assets in the order of the graph, each with what it is made from. */
function view(graph: Readonly<Record<string, readonly string[]>>): GraphView {
  const nodes = Object.keys(graph).map((asset_key) => ({
    asset_key,
    kind: asset_key.startsWith('raw') ? ('source' as const) : ('asset' as const),
    group: 'default',
    description: null,
    partitions: null,
    upstream: 0,
    downstream: 0,
  }))
  const edges = Object.entries(graph).flatMap(([to, upstream]) => upstream.map((from) => ({ from, to })))
  return { graph_version: 'g1', nodes, edges }
}

const diamond = view({ raw: [], left: ['raw'], right: ['raw'], both: ['left', 'right'], end: ['both', 'raw'], alone: [] })

describe('the graph as text', () => {
  test('has every asset once, below the last of what it is made from, and names the rest of that', () => {
    expect(treeLines(diamond)).toEqual([
      'raw  source',
      '├─ left  asset',
      '│  └─ both  asset  ← also right',
      '│     └─ end  asset  ← also raw',
      '└─ right  asset',
      'alone  asset',
    ])
  })

  test('of a chain of 10,000 assets is not wider than a screen', () => {
    const chain = Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`c${i}`, i === 0 ? [] : [`c${i - 1}`]]))
    const lines = treeLines(view(chain))
    expect(lines).toHaveLength(10_000)
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThan(120)
  })
})

test('Graphviz gets boxes and arrows, with sources dashed', () => {
  const lines = dotText(diamond).split('\n')
  expect(lines[0]).toBe('digraph assets {')
  expect(lines).toContain('  "raw" [style=dashed];')
  expect(lines).toContain('  "left" -> "both";')
  expect(lines.at(-1)).toBe('}')
})

test('Mermaid gets ids that it can read, whatever keys look like', () => {
  const lines = mermaidText(view({ 'raw/orders': [], 'mart/revenue': ['raw/orders'] })).split('\n')
  expect(lines).toEqual(['flowchart LR', '  a0(["raw/orders"])', '  a1["mart/revenue"]', '  a0 --> a1'])
})
