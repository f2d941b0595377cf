import type {
  AcceptedFacts,
  AcceptedKeys,
  AssetDetail,
  AssetPage,
  AssetsApi,
  GraphView,
  KeyPage,
  KeysBody,
  PageQuery,
  ReportBody,
  WipeBody,
} from '../api/asset-contract.ts'
import { type Connection, queryText } from './connection.ts'

/** Asks a server about assets and their partitions. */
export class AssetsClient implements AssetsApi {
  readonly #server: Connection

  constructor(server: Connection) {
    this.#server = server
  }

  async list({ select, limit, cursor }: PageQuery & { select: readonly string[] }): Promise<AssetPage> {
    const query = queryText({ select, limit: String(limit), cursor })
    return await this.#server.json('GET', `/assets${query}`)
  }

  async get(assetKey: string): Promise<AssetDetail> {
    return await this.#server.json('GET', pathOf(assetKey))
  }

  async graph(select: readonly string[]): Promise<GraphView> {
    return await this.#server.json('GET', `/assets/graph${queryText({ select })}`)
  }

  async report(assetKey: string, body: ReportBody, user: string): Promise<AcceptedFacts> {
    return await this.#server.json('POST', `${pathOf(assetKey)}/materializations`, { body, user })
  }

  async wipe(assetKey: string, body: WipeBody, user: string): Promise<AcceptedFacts> {
    return await this.#server.json('POST', `${pathOf(assetKey)}/wipe`, { body, user })
  }

  async changeKeys(setName: string, body: KeysBody, user: string): Promise<AcceptedKeys> {
    return await this.#server.json('POST', keysPath(setName), { body, user })
  }

  async keys(setName: string, { limit, cursor }: PageQuery): Promise<KeyPage> {
    return await this.#server.json('GET', keysPath(setName) + queryText({ limit: String(limit), cursor }))
  }
}

/** One part of a path, slashes and all. The slash in front tells an asset called `graph` from the graph. */
const pathOf = (assetKey: string): string => `/assets/${encodeURIComponent(assetKey === 'graph' ? '/graph' : assetKey)}`

const keysPath = (setName: string): string => `/partitions/sets/${encodeURIComponent(setName)}/keys`
