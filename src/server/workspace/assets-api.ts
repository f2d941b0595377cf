import type { AssetsApi } from '../../api/asset-contract.ts'
import { AssetFacts } from './asset-facts.ts'
import { AssetReader } from './assets-reader.ts'
import type { Knowledge } from './knowledge.ts'
import { PartitionKeys } from './partition-keys.ts'

/** Everything that can be asked of assets and their partitions, as the API and the commands ask it. */
export function assetsApi(known: Knowledge): AssetsApi {
  const reader = new AssetReader(known)
  const facts = new AssetFacts(known)
  const sets = new PartitionKeys(known)
  return {
    list: async (query) => reader.list(query),
    get: (assetKey) => reader.get(assetKey),
    graph: async (select) => reader.graph(select),
    report: (assetKey, body, user) => facts.report(assetKey, body, user),
    wipe: (assetKey, body, user) => facts.wipe(assetKey, body, user),
    changeKeys: (setName, body, user) => sets.change(setName, body, user),
    keys: async (setName, query) => sets.list(setName, query),
  }
}
