import type { AssetsApi } from '../api/asset-contract.ts'
import type {
  AcceptedRun,
  LogQuery,
  NewRunBody,
  RerunBody,
  RunDetail,
  RunEvent,
  RunLogEntry,
  RunQuery,
  RunsApi,
  WireRun,
} from '../api/run-contract.ts'
import type { StatusApi } from '../api/status-contract.ts'
import { AssetsClient } from './assets-client.ts'
import { type ClientOptions, Connection, queryText } from './connection.ts'
import { statusClient } from './status-client.ts'

/** Speaks to a server as if it were here: the same questions, the same answers, the same errors. */
export class ServoClient implements RunsApi {
  /** All that can be asked, under its names. */
  readonly api: { readonly runs: RunsApi; readonly assets: AssetsApi; readonly statuses: StatusApi }
  readonly assets: AssetsApi
  readonly statuses: StatusApi
  readonly #server: Connection

  constructor(options: ClientOptions) {
    this.#server = new Connection(options)
    this.assets = new AssetsClient(this.#server)
    this.statuses = statusClient(this.#server)
    this.api = { runs: this, assets: this.assets, statuses: this.statuses }
  }

  async request(run: NewRunBody, user: string, traceparent?: string): Promise<AcceptedRun> {
    return await this.#server.json('POST', '/runs', { body: run, user, traceparent })
  }

  async cancel(
    runId: string,
    user: string,
    reason: string | undefined,
  ): Promise<{ run_id: string; accepted_event_id: string }> {
    const body = reason === undefined ? {} : { reason }
    return await this.#server.json('POST', `/runs/${encodeURIComponent(runId)}/cancel`, { body, user })
  }

  async rerun(runId: string, body: RerunBody, user: string, traceparent?: string): Promise<AcceptedRun> {
    return await this.#server.json('POST', `/runs/${encodeURIComponent(runId)}/rerun`, {
      body,
      user,
      traceparent,
    })
  }

  async list({ limit, state }: RunQuery): Promise<readonly WireRun[]> {
    const query = queryText({ limit, state })
    return (await this.#server.json<{ runs: WireRun[] }>('GET', `/runs${query}`)).runs
  }

  async get(runId: string): Promise<RunDetail> {
    return await this.#server.json('GET', `/runs/${encodeURIComponent(runId)}`)
  }

  logs(runId: string, { task, attempt }: LogQuery): AsyncIterable<RunLogEntry> {
    const query = queryText({ task, attempt })
    return this.#server.lines(`/runs/${encodeURIComponent(runId)}/logs${query}`)
  }

  /** True when the server of this name answers here. Nothing secret is sent: another program may have its port by now. */
  isThere(instance: string): Promise<boolean> {
    return this.#server.isThere(instance)
  }

  /** Asks a leader that leads only for a while to let this process lead. */
  async handOver(): Promise<void> {
    await this.#server.json('POST', '/leader/hand-over')
  }

  follow(runId: string, signal: AbortSignal): AsyncIterable<RunEvent> {
    return this.#server.lines(`/runs/${encodeURIComponent(runId)}/follow`, signal)
  }
}
