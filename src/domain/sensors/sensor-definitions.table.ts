import { type SensorSource, sensorTypes } from '../../contract/sensor.ts'
import { col } from '../../model/column.ts'
import { defineTable, type Row } from '../../model/table.ts'

export const sensorOrigins = ['code', 'api'] as const

export const sensorDefinitions = defineTable({
  name: 'sensor_definitions',
  doc: 'Sensors as declared. Their row_version is the definition version that evaluations carry.',
  key: ['sensor_id'],
  storage: { kind: 'hot' },
  columns: {
    sensor_id: col.string('Stable id.'),
    sensor_name: col.string('Name, free to change.'),
    description: col.optional(col.string('What it is for.')),
    origin: col.oneOf(sensorOrigins, 'Where it is declared: in the code of the project, or over the API.'),
    sensor_type: col.oneOf(sensorTypes, 'Its source: messages, polls, or events of this workspace.'),
    config: col.json<SensorSource>('Path, topic, interval, what it watches and the like.'),
    watches: col.optional(
      col.strings(
        'Asset keys, `mart/*` or `*` that its selections of watched assets mean; null where they are such themselves.',
      ),
    ),
    min_interval_sec: col.int('Least time between two evaluations that the clock brings.'),
    timeout_ms: col.int('How long its code may take.'),
    asset_selection: col.strings('What it may run; empty for anything, if it has code.'),
    code_version: col.optional(col.string('The version of its code.')),
    has_code: col.boolean('Whether a function of the project decides. Without, each message asks for the same selection.'),
    max_tries: col.int('How many failed tries make a message a dead letter.'),
    enabled: col.boolean('A disabled sensor does nothing at all.'),
    file: col.optional(col.string('Where it is declared.')),
    line: col.optional(col.int('The line there.')),
    definition_hash: col.string('Hash of the declaration, to notice changes.'),
    renamed_from: col.optional(col.string('Its former name.')),
    created_at: col.timestamp('When it was first declared.'),
    defined_at: col.timestamp('When it was last changed.'),
    removed_at: col.optional(col.timestamp('When it was deleted, or was no longer declared.')),
  },
})

export type SensorRow = Row<typeof sensorDefinitions>
