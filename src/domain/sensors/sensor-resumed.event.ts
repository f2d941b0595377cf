import { defineEvent } from '../../model/event.ts'
import { sensorSwitch, switchSensor } from './edit-sensor-state.ts'
import { changesSensor } from './order.ts'

export const SensorResumed = defineEvent({
  type: 'SensorResumed',
  version: 1,
  doc: 'A sensor was resumed.',
  payload: sensorSwitch,
  idempotencyKey: (change) => `sensor_resume:${change.sensor_id}:${change.request_id}`,
  dedup: 'key',
  ordered: [changesSensor],
  fold: (context) => switchSensor(context, 'ACTIVE'),
})
