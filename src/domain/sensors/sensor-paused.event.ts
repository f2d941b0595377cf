import { defineEvent } from '../../model/event.ts'
import { sensorSwitch, switchSensor } from './edit-sensor-state.ts'
import { changesSensor } from './order.ts'

export const SensorPaused = defineEvent({
  type: 'SensorPaused',
  version: 1,
  doc: 'A sensor was paused.',
  payload: sensorSwitch,
  idempotencyKey: (change) => `sensor_pause:${change.sensor_id}:${change.request_id}`,
  dedup: 'key',
  ordered: [changesSensor],
  fold: (context) => switchSensor(context, 'PAUSED'),
})
