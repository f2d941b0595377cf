import type { AssetsApi } from './asset-contract.ts'
import type { SchedulesApi } from './automation/schedule-contract.ts'
import type { RunsApi } from './run-contract.ts'
import type { StatusApi } from './status-contract.ts'

/** Everything that a route, a command or a page can ask of a workspace and tell it. */
export interface WorkspaceApi {
  readonly runs: RunsApi
  readonly assets: AssetsApi
  readonly statuses: StatusApi
  readonly schedules: SchedulesApi
}
