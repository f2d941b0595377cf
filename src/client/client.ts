import type { AlertsApi } from '../api/alerts/alert-contract.ts'
import type { AssetsApi } from '../api/asset-contract.ts'
import type { BackfillsApi } from '../api/automation/backfill-contract.ts'
import type { SchedulesApi } from '../api/automation/schedule-contract.ts'
import type { SensorsApi } from '../api/automation/sensor-contract.ts'
import type { WhyApi } from '../api/automation/why-contract.ts'
import type { LoginLink } from '../api/login/login-links.ts'
import type { RetentionApi } from '../api/retention-contract.ts'
import type { RunsApi } from '../api/run-contract.ts'
import type { StatusApi } from '../api/status-contract.ts'
import type { TokensApi } from '../api/tokens/token-contract.ts'
import type { WorkspaceApi } from '../api/workspace-contract.ts'
import { alertsClient } from './alerts-client.ts'
import { assetsClient } from './assets-client.ts'
import { backfillsClient } from './backfills-client.ts'
import { type ClientOptions, Connection } from './connection.ts'
import type { Remote } from './remote.ts'
import { retentionClient } from './retention-client.ts'
import { runsClient } from './runs-client.ts'
import { schedulesClient } from './schedules-client.ts'
import { sensorsClient } from './sensors-client.ts'
import { statusClient } from './status-client.ts'
import { tokensClient } from './tokens-client.ts'
import { whyClient } from './why-client.ts'

/** A workspace whose leader is another process: the same questions, the same answers, the same errors, over HTTP. */
export class ServoClient implements WorkspaceApi {
  readonly runs: Remote<RunsApi>
  readonly assets: Remote<AssetsApi>
  readonly statuses: Remote<StatusApi>
  readonly schedules: Remote<SchedulesApi>
  readonly sensors: Remote<SensorsApi>
  readonly backfills: Remote<BackfillsApi>
  readonly whys: Remote<WhyApi>
  readonly retention: Remote<RetentionApi>
  readonly alerts: Remote<AlertsApi>
  readonly tokens: Remote<TokensApi>
  readonly #server: Connection

  constructor(options: ClientOptions) {
    this.#server = new Connection(options)
    this.runs = runsClient(this.#server)
    this.assets = assetsClient(this.#server)
    this.statuses = statusClient(this.#server)
    this.schedules = schedulesClient(this.#server)
    this.sensors = sensorsClient(this.#server)
    this.backfills = backfillsClient(this.#server)
    this.whys = whyClient(this.#server)
    this.retention = retentionClient(this.#server)
    this.alerts = alertsClient(this.#server)
    this.tokens = tokensClient(this.#server)
  }

  /** The same server, asked in another way: `client.with({ signal: AbortSignal.timeout(5_000) }).runs.list()`. */
  with(options: Partial<ClientOptions>): ServoClient {
    return new ServoClient({ ...this.#server.options, ...options })
  }

  /** True when the server of this name answers here. Nothing secret is sent: another program may have its port by now. */
  isThere(instance: string): Promise<boolean> {
    return this.#server.isThere(instance)
  }

  get url(): string {
    return this.#server.url
  }

  /** A link that signs a browser in as this user. */
  async loginLink(user: string): Promise<LoginLink> {
    return await this.#server.json('POST', '/auth/links', { user })
  }

  /** Requests that a command that leads for a while lets this process lead. */
  async handOver(): Promise<void> {
    await this.#server.json('POST', '/leader/hand-over')
  }
}
