import { ServoError } from '../../lib/error.ts'
import { canonicalJson } from '../../lib/json.ts'
import { type PartitionDefinition, partitionDefinition } from '../../partitions/definition.ts'
import { defaultMapping } from '../../partitions/mappings/default-mapping.ts'
import { type PartitionMapping, partitionMapping } from '../../partitions/mappings/mapping.ts'
import { type TimeDefinition, type TimeWindows, timeWindows } from '../../partitions/time/windows.ts'
import type { AssetGraph } from './graph.ts'

/** One dependency of an asset: what it is made from, and which partitions of that. */
export interface Link {
  readonly upstream: string
  readonly mapping: PartitionMapping
}

/** How the partitions of assets depend on each other, at any time. Each mapping is computed once, at the first question. */
export class GraphMappings {
  readonly #graph: AssetGraph
  readonly #definitions = new Map<string, PartitionDefinition | undefined>()
  /** Assets with equal partitions share one definition, and with it everything that is computed from it. */
  readonly #shared = new Map<string, PartitionDefinition>()
  readonly #links = new Map<string, readonly Link[]>()
  readonly #windows = new Map<string, TimeWindows>()

  constructor(graph: AssetGraph) {
    this.#graph = graph
  }

  /** Undefined for an asset that is made as a whole. */
  definition(assetKey: string): PartitionDefinition | undefined {
    if (this.#definitions.has(assetKey)) return this.#definitions.get(assetKey)
    const said = this.#graph.assets.get(assetKey)?.partitions
    const definition = said ? this.#share(parseRecorded(partitionDefinition, said, `the partitions of ${assetKey}`)) : undefined
    this.#definitions.set(assetKey, definition)
    return definition
  }

  /** The dependencies that the graph has, including the asset itself if it is made from its own past. */
  links(assetKey: string): readonly Link[] {
    let links = this.#links.get(assetKey)
    if (links === undefined) {
      const asset = this.#graph.assets.get(assetKey)
      const named = asset === undefined ? [] : [...Object.values(asset.inputs), ...asset.deps]
      links = named
        .filter(({ asset_key }) => this.#graph.assets.has(asset_key))
        .map(({ asset_key, mapping }) => ({ upstream: asset_key, mapping: this.mapping(assetKey, asset_key, mapping) }))
      this.#links.set(assetKey, links)
    }
    return links
  }

  /** The mapping of a dependency: the author's, or the default for the two definitions. */
  mapping(assetKey: string, upstream: string, said: unknown): PartitionMapping {
    if (said) return parseRecorded(partitionMapping, said, `the mapping from ${upstream} to ${assetKey}`)
    const { mapping, reason } = defaultMapping(this.definition(assetKey), this.definition(upstream), [assetKey, upstream])
    if (mapping !== undefined) return mapping
    throw new ServoError('invalid', 'mapping_missing', `${assetKey} has no mapping to the partitions of ${upstream}`, {
      hint: `${reason}. Give the dependency a mapping.`,
    })
  }

  readonly windows = (definition: TimeDefinition): TimeWindows => {
    const text = canonicalJson(definition)
    let windows = this.#windows.get(text)
    if (windows === undefined) {
      windows = timeWindows(definition)
      this.#windows.set(text, windows)
    }
    return windows
  }

  #share(definition: PartitionDefinition): PartitionDefinition {
    const text = canonicalJson(definition)
    const known = this.#shared.get(text)
    if (known === undefined) this.#shared.set(text, definition)
    return known ?? definition
  }
}

interface Schema<T> {
  safeParse(value: unknown): { success: true; data: T } | { success: false; error: { issues: readonly Issue[] } }
}

interface Issue {
  readonly path: readonly PropertyKey[]
  readonly message: string
}

function parseRecorded<T>(schema: Schema<T>, value: unknown, what: string): T {
  const result = schema.safeParse(value)
  if (result.success) return result.data
  const [issue] = result.error.issues
  throw new ServoError(
    'invalid',
    'bad_partitions',
    `${what}: ${[issue?.path.join('.'), issue?.message].filter(Boolean).join(': ')}`,
    {
      hint: 'Fix it in the project and load the project again.',
    },
  )
}
