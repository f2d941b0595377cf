import { defineEvent } from '../../model/event.ts'
import { sensorSwitch, switchSensor } from './edit-sensor-state.ts'

export const SensorResumed = defineEvent({
  type: 'SensorResumed',
  version: 1,
  doc: 'A sensor was resumed.',
  payload: sensorSwitch,
  idempotencyKey: (change) => `sensor_resume:${change.sensor_id}:${change.request_id}`,
  dedup: 'key',
  fold: (context) => switchSensor(context, 'ACTIVE'),
})
