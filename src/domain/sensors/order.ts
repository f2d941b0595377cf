import type { Ordered } from '../../model/event.ts'
import { isHappeningId } from './evaluation-ids.ts'

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

/** Why it counts for everything else when sensors are declared and removed. */
export const changesWatchers: Ordered = {
  // Ordered against everything: what ends a task or a run may have waited for any other fact.
  with: ['*'],
  when: () => true,
  why: 'A sensor hears of what happens while it watches, and of nothing before or after.',
}

/** Why an evaluation of a happening follows the happening. */
export const evaluatesHappening: Ordered = {
  with: ['*'],
  when: ({ trigger_source: source }) => source.source === 'push' && isHappeningId(source.message_id),
  why: 'An evaluation ends the wait of what it evaluated, and is made of nothing that did not happen before.',
}
