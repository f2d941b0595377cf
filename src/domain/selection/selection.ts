import type { AssetDefinition } from '../../contract/project-manifest.ts'
import { wildcard } from '../../lib/text/wildcard.ts'
import type { AssetGraph } from '../assets/graph.ts'
import type { SelectionTree } from './parser.ts'

/** The keys of the assets that a selection means in this graph. Sources are selected like any other asset. */
export function select(selection: SelectionTree, graph: AssetGraph): Set<string> {
  switch (selection.op) {
    case 'all':
      return new Set(graph.assets.keys())
    case 'key':
      return byKey(selection.pattern, graph)
    case 'owner':
      return matching(graph, ({ owners }) => selection.value !== null && owners.includes(selection.value))
    case 'kind':
      return matching(graph, ({ kinds }) => (selection.value === null ? kinds.length === 0 : kinds.includes(selection.value)))
    case 'group':
      return byGroup(selection.value, graph)
    case 'is':
      return matching(graph, ({ asset_key }) => graph.canBeMade(asset_key) === (selection.value === 'materializable'))
    case 'tag':
      return matching(graph, ({ tags }) => selection.name !== null && ownTag(tags, selection.name) === selection.value)
    case 'not':
      return select({ op: 'all' }, graph).difference(select(selection.of, graph))
    case 'and':
      return selection.of.map((each) => select(each, graph)).reduce((both, each) => both.intersection(each))
    case 'or': {
      const any = new Set<string>()
      for (const each of selection.of) for (const key of select(each, graph)) any.add(key)
      return any
    }
    case 'around': {
      const inner = select(selection.of, graph)
      return steps(inner, (key) => graph.upstream(key), selection.up).union(
        steps(inner, (key) => graph.downstream(key), selection.down),
      )
    }
    case 'roots':
      return ends(select(selection.of, graph), graph, (key) => graph.downstream(key))
    case 'sinks':
      return ends(select(selection.of, graph), graph, (key) => graph.upstream(key))
  }
}

function matching(graph: AssetGraph, holds: (asset: AssetDefinition) => boolean): Set<string> {
  const found = new Set<string>()
  for (const [key, asset] of graph.assets) if (holds(asset)) found.add(key)
  return found
}

/** Tags are named by people: one called `constructor` must not find what every object has. */
const ownTag = (tags: Readonly<Record<string, string>>, name: string): string | undefined =>
  Object.hasOwn(tags, name) ? tags[name] : undefined

function byKey(pattern: string, graph: AssetGraph): Set<string> {
  if (!pattern.includes('*')) return new Set(graph.assets.has(pattern) ? [pattern] : [])
  const isMeant = wildcard(pattern)
  return matching(graph, ({ asset_key }) => isMeant(asset_key))
}

/** As Dagster has it: no group at all means nothing, because every asset is in one; a wildcard only here and in keys. */
function byGroup(value: string | null, graph: AssetGraph): Set<string> {
  if (value === null || value === '') return new Set()
  const isMeant = wildcard(value)
  return matching(graph, ({ group }) => isMeant(group))
}

/** These assets, and all assets within this number of steps in one direction. */
function steps(from: ReadonlySet<string>, next: (key: string) => readonly string[], most: number): Set<string> {
  const reached = new Set(from)
  let edge: Iterable<string> = from
  for (let step = 0; step < most; step++) {
    const beyond: string[] = []
    for (const key of edge) {
      for (const neighbour of next(key)) {
        if (reached.has(neighbour)) continue
        reached.add(neighbour)
        beyond.push(neighbour)
      }
    }
    if (beyond.length === 0) break
    edge = beyond
  }
  return reached
}

/**
 * The selected assets that none of the others leads to, however many unselected ones lie between. Sources do not count:
 * the roots of everything are the assets that can be made first, not the sources.
 */
function ends(selected: ReadonlySet<string>, graph: AssetGraph, onward: (key: string) => readonly string[]): Set<string> {
  const made = [...selected].filter((key) => graph.canBeMade(key))
  const beyond = new Set(made.flatMap(onward))
  const led = steps(beyond, onward, Number.POSITIVE_INFINITY)
  return new Set(made.filter((key) => !led.has(key)))
}
