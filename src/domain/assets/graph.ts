import type { AssetDefinition, ProjectProblem } from '../../contract/project-manifest.ts'
import { assert } from '../../lib/assert.ts'

/** A problem of the graph, reported like any problem of a project, with the assets on the way to it. */
export interface GraphProblem extends ProjectProblem {
  readonly code: 'cycle' | 'missing_dependency' | 'duplicate_key'
  /** For a cycle every asset on it, the first again at the end; otherwise the asset and what it named. */
  readonly path: readonly string[]
}

/** An author repairs one at a time; a thousand long cycles would take quadratic space. */
const MAX_CYCLES = 20

const none: readonly string[] = []

/**
 * The assets of a project and what each is made from. It can be built from any definitions, even with problems: a
 * dependency that is not declared is not an edge, of an asset that is declared twice the first counts, and a cycle stays a cycle.
 */
export class AssetGraph {
  /** By key, in the order of keys, so that everything derived from a graph is the same however its files were read. */
  readonly assets: ReadonlyMap<string, AssetDefinition>
  /** All keys, each after its upstream. */
  readonly order: readonly string[]
  readonly problems: readonly GraphProblem[]
  readonly #upstream = new Map<string, readonly string[]>()
  readonly #downstream = new Map<string, string[]>()

  constructor(definitions: readonly AssetDefinition[]) {
    const problems: GraphProblem[] = []
    const assets = new Map<string, AssetDefinition>()
    for (const asset of [...definitions].sort(byKey)) {
      const first = assets.get(asset.asset_key)
      if (first === undefined) assets.set(asset.asset_key, asset)
      else problems.push(duplicate(first, asset))
    }
    this.assets = assets
    for (const asset of assets.values()) this.#upstream.set(asset.asset_key, this.#edgesInto(asset, problems))
    this.order = this.#sortOut(problems)
    this.problems = problems
  }

  /** The definition of an asset that the graph has. */
  definition(key: string): AssetDefinition {
    const definition = this.assets.get(key)
    assert(definition !== undefined, `asset ${key} is in the graph`)
    return definition
  }

  /** The upstream assets that the graph has, never the asset itself. */
  upstream(key: string): readonly string[] {
    return this.#upstream.get(key) ?? none
  }

  downstream(key: string): readonly string[] {
    return this.#downstream.get(key) ?? none
  }

  /** Sources are observed, not made. */
  canBeMade(key: string): boolean {
    const asset = this.assets.get(key)
    return asset !== undefined && asset.kind !== 'source'
  }

  #edgesInto(asset: AssetDefinition, problems: GraphProblem[]): readonly string[] {
    const named = new Set<string>()
    for (const { asset_key: upstream, mapping } of dependenciesOf(asset)) {
      if (!this.assets.has(upstream)) problems.push(missing(asset, upstream))
      // Yesterday's partition of the same asset is neither a cycle nor an edge between assets.
      else if (upstream !== asset.asset_key) named.add(upstream)
      else if (!(asset.partitions && mapping)) problems.push(cycle([upstream, upstream], asset))
    }
    for (const upstream of named) {
      const below = this.#downstream.get(upstream)
      if (below === undefined) this.#downstream.set(upstream, [asset.asset_key])
      else below.push(asset.asset_key)
    }
    return [...named].sort()
  }

  /** Depth first with an explicit stack: a chain of 100,000 assets is deeper than the call stack. */
  #sortOut(problems: GraphProblem[]): string[] {
    const order: string[] = []
    let cycles = 0
    const state = new Map<string, 'open' | 'done'>()
    for (const start of this.assets.keys()) {
      if (state.has(start)) continue
      const path = [{ key: start, next: 0 }]
      state.set(start, 'open')
      for (let top = path.at(-1); top !== undefined; top = path.at(-1)) {
        const upstream = this.upstream(top.key)[top.next++]
        if (upstream === undefined) {
          state.set(top.key, 'done')
          order.push(top.key)
          path.pop()
        } else if (!state.has(upstream)) {
          state.set(upstream, 'open')
          path.push({ key: upstream, next: 0 })
        } else if (state.get(upstream) === 'open' && cycles++ < MAX_CYCLES) {
          problems.push(cycle(loopOf(path, upstream), this.assets.get(top.key)))
        }
      }
    }
    return order
  }
}

function dependenciesOf(asset: AssetDefinition): AssetDefinition['deps'] {
  return [...Object.values(asset.inputs), ...asset.deps]
}

const byKey = (a: AssetDefinition, b: AssetDefinition): number =>
  a.asset_key < b.asset_key ? -1 : a.asset_key > b.asset_key ? 1 : 0

/** Prints a cycle from upstream to downstream and back to its start. */
function loopOf(path: readonly { key: string }[], upstream: string): string[] {
  const from = path.findLastIndex(({ key }) => key === upstream)
  const loop = path.slice(from).map(({ key }) => key)
  return [upstream, ...loop.reverse()]
}

const MAX_SHOWN = 12

function cycle(path: readonly string[], asset: AssetDefinition | undefined): GraphProblem {
  const shown =
    path.length <= MAX_SHOWN ? path : [...path.slice(0, MAX_SHOWN - 1), `(${path.length - MAX_SHOWN} more)`, path.at(-1)]
  return {
    code: 'cycle',
    message: `these assets depend on each other: ${shown.join(' → ')}`,
    hint: 'Remove one of these dependencies. An asset that needs its own earlier partition uses previous().',
    file: asset?.file,
    line: asset?.line,
    path,
  }
}

function missing(asset: AssetDefinition, upstream: string): GraphProblem {
  return {
    code: 'missing_dependency',
    message: `${asset.asset_key} depends on ${upstream}, which no file declares`,
    hint: `Declare ${upstream}, as a source() if it is materialized elsewhere, or fix the name.`,
    file: asset.file,
    line: asset.line,
    path: [asset.asset_key, upstream],
  }
}

function duplicate(first: AssetDefinition, second: AssetDefinition): GraphProblem {
  const place = first.file ? ` (first in ${first.file}${first.line ? `:${first.line}` : ''})` : ''
  return {
    code: 'duplicate_key',
    message: `${second.asset_key} is declared twice${place}`,
    hint: 'Give one of them another key.',
    file: second.file,
    line: second.line,
    path: [second.asset_key],
  }
}
