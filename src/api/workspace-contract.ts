import type { AlertsApi } from './alerts/alert-contract.ts'
import type { AssetsApi } from './asset-contract.ts'
import type { BackfillsApi } from './automation/backfill-contract.ts'
import type { SchedulesApi } from './automation/schedule-contract.ts'
import type { SensorsApi } from './automation/sensor-contract.ts'
import type { WhyApi } from './automation/why-contract.ts'
import type { RetentionApi } from './retention-contract.ts'
import type { RunsApi } from './run-contract.ts'
import type { StatusApi } from './status-contract.ts'

/** All questions and commands that a workspace accepts from routes, commands and pages. */
export interface WorkspaceApi {
  readonly runs: RunsApi
  readonly assets: AssetsApi
  readonly statuses: StatusApi
  readonly schedules: SchedulesApi
  readonly sensors: SensorsApi
  readonly backfills: BackfillsApi
  readonly whys: WhyApi
  readonly retention: RetentionApi
  readonly alerts: AlertsApi
}
