import type { GraphView } from '../api/asset-contract.ts'
import { colours, printable } from './output.ts'

/** A reader loses track below this depth. Deeper assets begin again at the margin; otherwise a chain of 10,000 would be 300 MB of spaces. */
const MAX_DEPTH = 30

/**
 * The graph as text, upstream first. Each asset stands once, below the one of its upstream assets
 * that is furthest from the beginning; the others are named beside it, so that no edge is missing.
 */
export function treeLines({ nodes, edges }: GraphView): string[] {
  const upstream = Map.groupBy(edges, ({ to }) => to)
  const depth = new Map<string, number>()
  const parents = new Map<string, string | undefined>()
  const below = new Map<string | undefined, string[]>()
  // Every node comes after its upstream nodes, so their depth is known.
  for (const { asset_key } of nodes) {
    const from = (upstream.get(asset_key) ?? []).map((edge) => edge.from)
    const parent = from.reduce<string | undefined>((deepest, each) => {
      if (deepest === undefined) return each
      return (depth.get(each) ?? 0) > (depth.get(deepest) ?? 0) ? each : deepest
    }, undefined)
    depth.set(asset_key, parent === undefined ? 0 : (depth.get(parent) ?? 0) + 1)
    parents.set(asset_key, parent)
    const siblings = below.get(parent)
    if (siblings === undefined) below.set(parent, [asset_key])
    else siblings.push(asset_key)
  }
  const kinds = new Map(nodes.map(({ asset_key, kind }) => [asset_key, kind]))
  const label = (key: string): string => {
    const others = (upstream.get(key) ?? []).map(({ from }) => from).filter((from) => from !== parents.get(key))
    const also = others.length === 0 ? '' : `  ← also ${others.join(', ')}`
    return `${printable(key)}${colours.dim(`  ${kinds.get(key)}${printable(also)}`)}`
  }
  return drawn(below, label)
}

interface Branch {
  readonly key: string
  readonly indent: string
  readonly depth: number
  readonly isLast: boolean
}

function drawn(below: ReadonlyMap<string | undefined, readonly string[]>, label: (key: string) => string): string[] {
  const lines: string[] = []
  const roots = (below.get(undefined) ?? []).map((key) => ({ key, indent: '', depth: 0, isLast: false }))
  // An explicit stack: a chain of assets may be deeper than the stack of JavaScript.
  const open: Branch[] = roots.toReversed()
  const later: Branch[] = []
  for (let branch = open.pop() ?? later.shift(); branch !== undefined; branch = open.pop() ?? later.shift()) {
    const { key, indent, depth, isLast } = branch
    const children = below.get(key) ?? []
    const isCut = depth === MAX_DEPTH && children.length > 0
    lines.push(`${depth === 0 ? '' : colours.dim(`${indent}${isLast ? '└─ ' : '├─ '}`)}${label(key)}${isCut ? ' …' : ''}`)
    const inner = depth === 0 ? '' : `${indent}${isLast ? '   ' : '│  '}`
    const branches = children.map((child, i) => ({
      key: child,
      indent: isCut ? '' : inner,
      depth: isCut ? 0 : depth + 1,
      isLast: i === children.length - 1,
    }))
    if (isCut) later.push(...branches)
    else for (const child of branches.toReversed()) open.push(child)
  }
  return lines
}

/** For Graphviz. */
export function dotText({ nodes, edges }: GraphView): string {
  const name = (key: string): string => `"${key.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`
  const boxes = nodes.map(({ asset_key, kind }) => `  ${name(asset_key)}${kind === 'source' ? ' [style=dashed]' : ''};`)
  const arrows = edges.map(({ from, to }) => `  ${name(from)} -> ${name(to)};`)
  return ['digraph assets {', '  rankdir=LR;', '  node [shape=box];', ...boxes, ...arrows, '}'].join('\n')
}

/** For Mermaid, which GitHub and others show as a picture. Its ids may not have slashes, so they are numbers. */
export function mermaidText({ nodes, edges }: GraphView): string {
  const ids = new Map(nodes.map(({ asset_key }, i) => [asset_key, `a${i}`]))
  const boxes = nodes.map(({ asset_key, kind }) => {
    const text = `"${asset_key.replaceAll('"', '#quot;')}"`
    return `  ${ids.get(asset_key)}${kind === 'source' ? `([${text}])` : `[${text}]`}`
  })
  const arrows = edges.map(({ from, to }) => `  ${ids.get(from)} --> ${ids.get(to)}`)
  return ['flowchart LR', ...boxes, ...arrows].join('\n')
}
