import type { Rows } from '../../model/rows.ts'
import { assetDefinitions } from './asset-definitions.table.ts'

/** The key of an asset and its former keys, newest first. Records under any of them belong to the asset. */
export function keysOfAsset(rows: Rows, assetKey: string): readonly string[] {
  const keys = [assetKey]
  for (let row = rows.hot(assetDefinitions).get(assetKey); row?.renamed_from; ) {
    const former = rows.hot(assetDefinitions).get(row.renamed_from)
    // The key is unknown, belongs to another asset by now, or closes a circle of renames.
    if (former === undefined || !former.removed || keys.includes(former.asset_key)) break
    keys.push(former.asset_key)
    row = former
  }
  return keys
}
