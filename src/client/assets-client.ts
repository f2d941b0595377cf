import type { AssetsApi } from '../api/asset-contract.ts'
import { type Connection, queryText } from './connection.ts'
import type { Remote } from './remote.ts'

/** Reads assets and their partitions from a server, and reports facts about them. */
export function assetsClient(server: Connection): Remote<AssetsApi> {
  return {
    list: (query = {}) => server.json('GET', `/assets${queryText(query)}`),
    get: (assetKey) => server.json('GET', pathOf(assetKey)),
    graph: (select) => server.json('GET', `/assets/graph${queryText({ select })}`),
    report: (assetKey, body, user) => server.json('POST', `${pathOf(assetKey)}/materializations`, { body, user }),
    wipe: (assetKey, body, user) => server.json('POST', `${pathOf(assetKey)}/wipe`, { body, user }),
    changeKeys: (setName, body, user) => server.json('POST', keysPath(setName), { body, user }),
    keys: (setName, query = {}) => server.json('GET', keysPath(setName) + queryText(query)),
  }
}

/** One part of a path, slashes and all. The slash in front distinguishes an asset called `graph` from the graph. */
const pathOf = (assetKey: string): string => `/assets/${encodeURIComponent(assetKey === 'graph' ? '/graph' : assetKey)}`

const keysPath = (setName: string): string => `/partitions/sets/${encodeURIComponent(setName)}/keys`
