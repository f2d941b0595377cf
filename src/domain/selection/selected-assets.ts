import type { AssetDefinition } from '../../contract/project-manifest.ts'
import { ServoError } from '../../lib/error.ts'
import { nearest } from '../../lib/nearest.ts'
import type { AssetGraph } from '../assets/graph.ts'
import { parseSelection, plainKey } from './parser.ts'
import { select } from './selection.ts'

/** The asset of this key, which must exist. */
export function knownAsset(graph: AssetGraph, key: string): AssetDefinition {
  const asset = graph.assets.get(key)
  if (asset !== undefined) return asset
  const meant = nearest(key, graph.assets.keys())
  throw new ServoError('not_found', 'no_such_asset', `asset ${JSON.stringify(key.slice(0, 255))} not found`, {
    hint: meant === undefined ? '`servo assets list` lists all assets.' : `Did you mean ${meant}?`,
  })
}

/** The assets that any of these selections means, in the order of their keys; all assets without a selection. */
export function selectedAssets(graph: AssetGraph, selections: readonly string[]): string[] {
  if (selections.length === 0) return [...graph.assets.keys()]
  const chosen = new Set<string>()
  for (const selection of selections) {
    const key = graph.assets.has(selection) ? selection : plainKey(selection)
    if (key !== undefined) chosen.add(knownAsset(graph, key).asset_key)
    else for (const found of select(parseSelection(selection), graph)) chosen.add(found)
  }
  return [...graph.assets.keys()].filter((key) => chosen.has(key))
}
