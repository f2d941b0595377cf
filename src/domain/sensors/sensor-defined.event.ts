import { z } from 'zod'
import { checkSensor, sensorDefinition } from '../../contract/sensor.ts'
import { id } from '../../model/envelope.ts'
import { applied, defineEvent } from '../../model/event.ts'
import { forgetHappenings } from './happenings/happenings.ts'
import { checkWatches, isWatching, startWatching, stopWatching } from './happenings/watches.ts'
import { changesSensor, changesWatchers } from './order.ts'
import { sensorDefinitions, sensorOrigins } from './sensor-definitions.table.ts'

const payload = sensorDefinition
  .omit({ name: true })
  .extend({
    sensor_id: id,
    sensor_name: id,
    origin: z.enum(sensorOrigins).default('code'),
    /** The same for the same definition, so that declaring it again adds nothing. */
    definition_hash: id,
    /** Tells a return to an earlier definition from a repetition of the event that declared it. */
    request_id: id,
    /** What the assets of its config mean, if they are more than asset keys, `mart/*` or `*`: see `watchedKeys`. */
    watches: z.array(id).max(10_000).nullish(),
  })
  .superRefine((sensor, context) => {
    const wrong = (path: (string | number)[], message: string) => context.addIssue({ code: 'custom', path, message })
    checkSensor(sensor, wrong)
    checkWatches(sensor, wrong)
  })

export const SensorDefined = defineEvent({
  type: 'SensorDefined',
  version: 1,
  doc: 'A sensor was declared or changed.',
  payload,
  idempotencyKey: (sensor) => `sensor_def:${sensor.sensor_id}:${sensor.request_id}`,
  dedup: 'key',
  ordered: [changesSensor, changesWatchers],
  fold({ event, at, payload: sensor, rows }) {
    const known = rows.hot(sensorDefinitions).get(sensor.sensor_id)
    if (known?.definition_hash === sensor.definition_hash && known.removed_at === null) return applied
    const { sensor_name } = sensor
    const isRenamed = known !== undefined && known.sensor_name !== sensor_name
    const row = rows.hot(sensorDefinitions).insert({
      sensor_id: sensor.sensor_id,
      sensor_name,
      description: sensor.description ?? null,
      origin: sensor.origin,
      sensor_type: sensor.config.type,
      config: sensor.config,
      watches: sensor.watches ?? null,
      min_interval_sec: sensor.min_interval_sec,
      timeout_ms: sensor.timeout_ms,
      asset_selection: sensor.asset_selection,
      code_version: sensor.code_version ?? null,
      has_code: sensor.has_code,
      max_tries: sensor.max_tries,
      enabled: sensor.enabled,
      file: sensor.file ?? null,
      line: sensor.line ?? null,
      definition_hash: sensor.definition_hash,
      renamed_from: isRenamed ? known.sensor_name : (known?.renamed_from ?? null),
      created_at: known?.created_at ?? at,
      defined_at: at,
      removed_at: null,
      row_version: event.event_id,
    })
    if (known !== undefined) stopWatching(rows, known)
    startWatching(rows, row, event.event_id)
    if (!isWatching(row) || known?.sensor_type !== row.sensor_type) forgetHappenings(rows, row.sensor_id, event.event_id)
    return applied
  },
})
