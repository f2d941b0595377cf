import type { Row } from '../../../model/table.ts'
import type { automationState } from '../../automation/automation-state.table.ts'
import type { SensorRow } from '../sensor-definitions.table.ts'
import type { SensorStateRow } from '../sensor-state.table.ts'

/** What decides whether a sensor is evaluated at all. */
export interface WatchedSensor {
  readonly definition: Readonly<SensorRow>
  readonly state: Readonly<SensorStateRow> | undefined
  /** The state of all automation. */
  readonly everything: Readonly<Row<typeof automationState>> | undefined
}

/** Why a sensor is not evaluated, since when, and by whom if a person had it so. */
export interface Standstill {
  readonly code: 'removed' | 'disabled' | 'paused' | 'automation_paused'
  readonly since: number | null
  readonly by: string | null
  readonly reason: string | null
}

/** Undefined if the sensor is to be evaluated. */
export function standstillOf({ definition, state, everything }: WatchedSensor): Standstill | undefined {
  const { removed_at, enabled, defined_at } = definition
  if (removed_at !== null) return { code: 'removed', since: removed_at, by: null, reason: null }
  if (!enabled) return { code: 'disabled', since: defined_at, by: null, reason: null }
  if (state?.status === 'PAUSED') return { code: 'paused', ...switched(state) }
  if (everything?.status === 'PAUSED') return { code: 'automation_paused', ...switched(everything) }
  return undefined
}

type Switched = Pick<SensorStateRow, 'status_changed_at' | 'status_changed_by' | 'status_reason'>

const switched = ({ status_changed_at, status_changed_by, status_reason }: Switched): Omit<Standstill, 'code'> => ({
  since: status_changed_at,
  by: status_changed_by,
  reason: status_reason,
})
