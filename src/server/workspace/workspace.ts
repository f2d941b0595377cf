import type { Room } from '../../adapters/system/disk-room.ts'
import type { WorkspaceApi } from '../../api/workspace-contract.ts'
import type { Deliveries } from '../../contract/delivery.ts'
import { assetDefinitions } from '../../domain/assets/asset-definitions.table.ts'
import { keysOfAsset } from '../../domain/assets/former-keys.ts'
import { dataVersions } from '../../domain/partitions/data-versions.table.ts'
import { partitionStatus } from '../../domain/partitions/partition-status.table.ts'
import { storedValues } from '../../domain/partitions/stored-values.table.ts'
import { Alerts, type AlertsOptions } from './alerts.ts'
import { Assets } from './assets.ts'
import { Backfills } from './backfills/backfills.ts'
import type { Knowledge } from './knowledge.ts'
import { Removals } from './retention/removals.ts'
import { Runs, type RunsOptions } from './runs.ts'
import { Schedules } from './schedules/schedules.ts'
import { missingSecrets, type Senders } from './senders.ts'
import { Sensors } from './sensors.ts'
import type { StatusSource } from './status/current-staleness.ts'
import { Statuses } from './status/statuses.ts'
import { Whys } from './why/whys.ts'

export interface WorkspaceOptions extends Omit<RunsOptions, 'statuses'>, AlertsOptions {
  /** Evaluates sensors. Absent where none is evaluated: in a command, or with automation off. */
  readonly deliveries?: Deliveries | undefined
  /** Knows the senders of sensors. Absent where none is let in: in a command. */
  readonly senders?: Senders | undefined
  /** Whether this server lets schedules tick, evaluates sensors and plans chunks; absent in a command. */
  readonly automation?: boolean | undefined
  /** Why no code of the project can be evaluated here; undefined while it can. */
  readonly outage?: (() => string | undefined) | undefined
  /** How much room there is on the disk; absent where nobody knows. */
  readonly room?: (() => Promise<Room>) | undefined
}

export function workspaceApi(known: Knowledge, options: WorkspaceOptions): WorkspaceApi {
  const statuses = new Statuses(statusSource(known))
  const runs = new Runs(known, { ...options, statuses })
  const schedules = new Schedules(known, options)
  const sensors = new Sensors(known, { ...options, isServer: options.live !== undefined })
  const backfills = new Backfills(known, statuses, options.automation)
  const whys = new Whys(known, {
    statuses,
    schedule: (name) => schedules.find(name),
    sensor: (name) => sensors.find(name),
    polledAt: (sensorId) => options.deliveries?.polledAt?.(sensorId),
    missingSecrets: (sensor) => (options.senders === undefined ? [] : missingSecrets(sensor, options.senders)),
    run: (id) => runs.get(id),
    backfill: async (id) => backfills.find(await backfills.resolve(id)),
    failedChunks: async (id) => {
      const { chunks } = await backfills.chunks(id, { limit: 1, status: 'FAILED' })
      return chunks.map(({ run_id }) => run_id)
    },
    isOn: options.automation,
    outage: () => options.outage?.(),
  })
  const retention = new Removals(known, options.room)
  const alerts = new Alerts(known, options)
  return { runs, assets: new Assets(known, statuses), statuses, schedules, sensors, backfills, whys, retention, alerts }
}

export function statusSource(known: Knowledge): StatusSource {
  return {
    graph: () => known.graph.get(),
    partitions: () => known.graph.partitions(),
    rows: () => known.coldRows(partitionStatus),
    versions: () => known.coldRows(dataVersions),
    values: () => known.coldRows(storedValues),
    now: known.now,
    keysOf: (key) => keysOfAsset(known.rows(), key),
    recorded: (key) => known.rows().hot(assetDefinitions).get(key),
  }
}

/** How many partitions of each of these assets are older than its freshness policy allows. */
export async function overdueIn(known: Knowledge, assets: readonly string[]): Promise<Map<string, number>> {
  const summaries = await new Statuses(statusSource(known)).summaries(assets)
  return new Map(summaries.map(({ asset_key, causes }) => [asset_key, causes.freshness]))
}
