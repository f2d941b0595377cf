import { ServoError } from '../../../lib/error.ts'
import type { AssetGraph } from '../../assets/graph.ts'
import { selectedAssets } from '../../selection/selected-assets.ts'
import { isWatchPattern } from './watches.ts'

/**
 * What selections of watched assets mean in this graph, for `watches` of SensorDefined: asset keys, and `mart/*` and `*` as they stand,
 * so that assets which are added later are watched too. Tasks that began before an asset was renamed have its former key, so that
 * is watched as well. Throws if a selection cannot be read or means no asset.
 */
export function watchedKeys(selections: readonly string[], graph: AssetGraph): string[] {
  const watched = new Set<string>()
  for (const selection of selections) {
    const isWildcard = selection.endsWith('*') && isWatchPattern(selection)
    const keys = isWildcard
      ? [...graph.assets.keys()].filter((key) => key.startsWith(selection.slice(0, -1)))
      : selectedAssets(graph, [selection])
    if (isWildcard) watched.add(selection)
    else if (keys.length === 0)
      throw new ServoError('invalid', 'watches_nothing', `${selection} selects no asset, so there is nothing to watch`, {
        hint: `servo assets list ${JSON.stringify(selection)} shows what a selection matches.`,
      })
    for (const key of keys) {
      if (!isWildcard) watched.add(key)
      const former = graph.definition(key).renamed_from
      if (former != null && !graph.assets.has(former)) watched.add(former)
    }
  }
  return [...watched].sort()
}
