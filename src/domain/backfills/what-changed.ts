import { sha256 } from '../../lib/hash.ts'
import { canonicalJson } from '../../lib/json.ts'
import type { RecordedGraph } from '../assets/definitions.ts'
import type { GraphMappings } from '../assets/graph-mappings.ts'
import type { BackfillAssetRow } from './backfill-assets.table.ts'
import type { BackfillRow } from './backfills.table.ts'

/**
 * How an asset is made from others of its backfill, as a short text that is another when that changes. What it is made from besides
 * them changes nothing about the backfill.
 */
export function linksFingerprint(asset: string, covered: ReadonlySet<string>, mappings: Pick<GraphMappings, 'links'>): string {
  const links = mappings.links(asset).filter(({ upstream }) => covered.has(upstream))
  return sha256(links.map(canonicalJson).sort().join()).slice(0, 16)
}

const HOW_TO_GO_ON = 'change them back and resume it, or cancel it and create another'

/** Why the backfill cannot go on: its positions, or what they are made from, mean something else by now. */
export function whatChanged(
  { stages, asset_selection }: Readonly<BackfillRow>,
  rows: Iterable<Readonly<BackfillAssetRow>>,
  { graph, mappings }: RecordedGraph,
): string | undefined {
  const pinned = new Map([...rows].map(({ asset_key, links }) => [asset_key, links]))
  const covered = new Set(asset_selection)
  for (const { assets, partitions } of stages) {
    for (const key of assets) {
      if (!graph.assets.has(key) || !graph.canBeMade(key)) return `${key} is no longer in the project`
      if (canonicalJson(mappings.definition(key) ?? null) !== canonicalJson(partitions))
        return `the partitions of ${key} were changed after the backfill was created; ${HOW_TO_GO_ON}`
      const links = pinned.get(key) ?? null
      if (links !== null && links !== linksFingerprint(key, covered, mappings))
        return `the partitions that ${key} is made from were changed after the backfill was created; ${HOW_TO_GO_ON}`
    }
  }
  return undefined
}
