import { z } from 'zod'
import { count, id } from '../../model/envelope.ts'
import { applied, defineEvent, duplicate } from '../../model/event.ts'
import { sensorDefinitions } from './sensor-definitions.table.ts'

export const SensorDefined = defineEvent({
  type: 'SensorDefined',
  version: 1,
  doc: 'A sensor was declared or changed.',
  payload: z.object({
    sensor_id: id,
    sensor_name: id,
    sensor_type: z.enum(['push', 'poll']),
    min_interval_sec: count.default(30),
    asset_selection: z.array(id).max(10_000).default([]),
    config: z.unknown().nullish(),
    enabled: z.boolean().default(true),
    definition_hash: id,
  }),
  idempotencyKey: (sensor) => `sensor_def:${sensor.sensor_id}:${sensor.definition_hash}`,
  dedup: 'structure',
  fold({ event, at, payload: sensor, rows }) {
    const known = rows.hot(sensorDefinitions).get(sensor.sensor_id)
    const createdAt = Math.min(known?.created_at ?? at, at)
    if (known !== undefined && known.row_version >= event.event_id) {
      if (createdAt === known.created_at) return duplicate
      const row = rows.hot(sensorDefinitions).edit(sensor.sensor_id)
      if (row !== undefined) row.created_at = createdAt
      return applied
    }
    rows.hot(sensorDefinitions).insert({
      sensor_id: sensor.sensor_id,
      sensor_name: sensor.sensor_name,
      sensor_type: sensor.sensor_type,
      min_interval_sec: sensor.min_interval_sec,
      asset_selection: sensor.asset_selection,
      config: sensor.config ?? null,
      enabled: sensor.enabled,
      created_at: createdAt,
      row_version: event.event_id,
    })
    return applied
  },
})
