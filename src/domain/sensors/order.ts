import type { Ordered } from '../../model/event.ts'

interface AboutSensors {
  readonly sensor_id?: string
  readonly polled?: readonly { readonly sensor_id: string }[]
}

const sensorsOf = ({ sensor_id, polled = [] }: AboutSensors): readonly string[] =>
  sensor_id === undefined ? polled.map((one) => one.sensor_id) : [sensor_id]

/** Why facts about a sensor follow the order in which they were recorded. */
export const changesSensor: Ordered = {
  with: [
    'SensorDefined',
    'SensorRemoved',
    'SensorPaused',
    'SensorResumed',
    'SensorCursorReset',
    'SensorEvaluated',
    'SensorsPolled',
    'SensorMessageReplayed',
    'SensorMessageConflicted',
  ],
  when: (mine: AboutSensors, other: AboutSensors) => sensorsOf(mine).some((id) => sensorsOf(other).includes(id)),
  why: 'Of two evaluations of a message, or of two polls from one version, the first counts; errors, pauses and resets count from where the fact before left the sensor.',
}
