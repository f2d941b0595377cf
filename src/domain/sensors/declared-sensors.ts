import type { SensorDefinition } from '../../contract/sensor.ts'
import { sha256 } from '../../lib/hash.ts'
import { canonicalJson } from '../../lib/json.ts'
import { type NewEvent, newEvent } from '../../model/event.ts'
import { keptIds } from '../automation/kept-ids.ts'
import { SensorDefined } from './sensor-defined.event.ts'
import type { SensorRow, sensorOrigins } from './sensor-definitions.table.ts'
import { SensorRemoved } from './sensor-removed.event.ts'

export interface SensorsToRecord {
  /** Every sensor that the project declares. */
  readonly declared: readonly SensorDefinition[]
  /** Every row of `sensor_definitions`, those of removed sensors too: their ids come back with their names. */
  readonly known: Iterable<Readonly<SensorRow>>
  readonly mintId: () => string
}

/** What changed since the sensors of the project were last recorded. Sensors that were made over the API stay as they are. */
export function declaredSensors({ declared, known, mintId }: SensorsToRecord): NewEvent[] {
  const rows = [...known].filter((row) => row.origin === 'code')
  const byId = new Map(rows.map((row) => [row.sensor_id, row]))
  const ids = keptIds(
    declared,
    rows.map((row) => ({ ...row, id: row.sensor_id, name: row.sensor_name })),
  )
  const events = declared.flatMap((sensor) => {
    const sensor_id = ids.get(sensor.name) ?? mintId()
    const row = byId.get(sensor_id)
    const isSame = row?.removed_at === null && row.definition_hash === definitionHash(sensor)
    return isSame ? [] : [sensorDefined(sensor, sensor_id, 'code', mintId())]
  })
  const kept = new Set(ids.values())
  const gone = rows.filter((row) => row.removed_at === null && !kept.has(row.sensor_id))
  const removed = gone.map(({ sensor_id }) => newEvent(SensorRemoved, { sensor_id, request_id: mintId(), removed_by: 'code' }))
  return [...events, ...removed]
}

/** The declaration of one sensor. */
export function sensorDefined(
  sensor: SensorDefinition,
  sensor_id: string,
  origin: (typeof sensorOrigins)[number],
  request_id: string,
): NewEvent {
  const { name, ...definition } = sensor
  const definition_hash = definitionHash(sensor)
  return newEvent(SensorDefined, { ...definition, sensor_id, sensor_name: name, origin, definition_hash, request_id })
}

/** The same for the same definition, wherever in the code it stands. */
function definitionHash({ file: _, line: __, renamed_from: ___, ...definition }: SensorDefinition): string {
  return sha256(canonicalJson(definition))
}
