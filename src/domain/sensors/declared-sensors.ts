import type { SensorDefinition } from '../../contract/sensor.ts'
import { sha256 } from '../../lib/hash.ts'
import { canonicalJson } from '../../lib/json.ts'
import { type NewEvent, newEvent } from '../../model/event.ts'
import type { AssetGraph } from '../assets/graph.ts'
import { keptIds } from '../automation/kept-ids.ts'
import { watchedKeys } from './happenings/watched-keys.ts'
import { SensorDefined } from './sensor-defined.event.ts'
import type { SensorRow, sensorOrigins } from './sensor-definitions.table.ts'
import { SensorRemoved } from './sensor-removed.event.ts'

export interface SensorsToRecord {
  /** Every sensor that the project declares. */
  readonly declared: readonly SensorDefinition[]
  /** Every row of `sensor_definitions`, those of removed sensors too: their ids come back with their names. */
  readonly known: Iterable<Readonly<SensorRow>>
  readonly mintId: () => string
  /** The assets as the project declares them now. */
  readonly graph: AssetGraph
}

/** What changed since the sensors of the project were last recorded. Sensors that were made over the API stay as they are. */
export function declaredSensors({ declared, known, mintId, graph }: SensorsToRecord): NewEvent[] {
  const rows = [...known].filter((row) => row.origin === 'code')
  const byId = new Map(rows.map((row) => [row.sensor_id, row]))
  const ids = keptIds(
    declared,
    rows.map((row) => ({ ...row, id: row.sensor_id, name: row.sensor_name })),
  )
  const events = declared.flatMap((sensor) => {
    const sensor_id = ids.get(sensor.name) ?? mintId()
    const row = byId.get(sensor_id)
    const isSame = row?.removed_at === null && row.definition_hash === definitionHash(sensor, watchesOf(sensor, graph))
    return isSame ? [] : [sensorDefined(sensor, { sensor_id, origin: 'code', request_id: mintId(), graph })]
  })
  const kept = new Set(ids.values())
  const gone = rows.filter((row) => row.removed_at === null && !kept.has(row.sensor_id))
  const removed = gone.map(({ sensor_id }) => newEvent(SensorRemoved, { sensor_id, request_id: mintId(), removed_by: 'code' }))
  return [...events, ...removed]
}

interface Defining {
  readonly sensor_id: string
  readonly origin: (typeof sensorOrigins)[number]
  readonly request_id: string
  readonly graph: AssetGraph
}

/** The declaration of one sensor. What it watches is resolved in the graph as it is: another graph may make another declaration. */
export function sensorDefined(sensor: SensorDefinition, { graph, ...defining }: Defining): NewEvent {
  const { name, ...definition } = sensor
  const watches = watchesOf(sensor, graph)
  const facts = { ...defining, sensor_name: name, watches, definition_hash: definitionHash(sensor, watches) }
  return newEvent(SensorDefined, { ...definition, ...facts })
}

function watchesOf({ config }: SensorDefinition, graph: AssetGraph): string[] | null {
  const selections = config.type === 'asset' || config.type === 'run' ? config.assets : null
  return selections == null ? null : watchedKeys(selections, graph)
}

/** The same for the same definition, wherever in the code it stands. */
function definitionHash(sensor: SensorDefinition, watches: readonly string[] | null): string {
  const { file: _, line: __, renamed_from: ___, ...definition } = sensor
  return sha256(canonicalJson({ ...definition, watches }))
}
