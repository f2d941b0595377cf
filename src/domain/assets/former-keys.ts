import type { Rows } from '../../model/rows.ts'
import { assetDefinitions } from './asset-definitions.table.ts'

/** The key of an asset and those it had before, the newest first: what is on record under any of them is its own. */
export function keysOfAsset(rows: Rows, assetKey: string): readonly string[] {
  const keys = [assetKey]
  for (let row = rows.hot(assetDefinitions).get(assetKey); row?.renamed_from; ) {
    const former = rows.hot(assetDefinitions).get(row.renamed_from)
    // Nobody knows it, another asset is called so by now, or names go round in a circle.
    if (former === undefined || !former.removed || keys.includes(former.asset_key)) break
    keys.push(former.asset_key)
    row = former
  }
  return keys
}
