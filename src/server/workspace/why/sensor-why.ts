import { automationState, EVERYTHING } from '../../../domain/automation/automation-state.table.ts'
import { runKeyIndex } from '../../../domain/runs/run-key-index.table.ts'
import { runsOfEvaluation } from '../../../domain/sensors/evaluation/runs-of-evaluation.ts'
import type { SensorRow } from '../../../domain/sensors/sensor-definitions.table.ts'
import type { SensorEvalRow } from '../../../domain/sensors/sensor-evals.table.ts'
import { sensorMessageConflicts } from '../../../domain/sensors/sensor-message-conflicts.table.ts'
import { sensorMessages } from '../../../domain/sensors/sensor-messages.table.ts'
import { sensorState } from '../../../domain/sensors/sensor-state.table.ts'
import type { WhyAnswer } from '../../../domain/why/reasons.ts'
import { whyMessage, whySensor } from '../../../domain/why/why-sensor.ts'
import { quoteText } from '../../../lib/sql/sql-text.ts'
import { type Knowledge, lookup } from '../knowledge.ts'
import { latestEvaluations } from './find-evaluations.ts'
import { newestRows } from './newest-rows.ts'

/** As many evaluations of a sensor are told. */
const TOLD_EVALUATIONS = 5
/** More bodies under one id than these are not counted. */
const MAX_CONFLICTS = 1_000

/** Why a sensor asked for runs or did not, or what became of a message to it. */
export async function whyOfSensor(
  known: Knowledge,
  definition: Readonly<SensorRow>,
  messageId: string | undefined,
  here: {
    polledAt(sensorId: string): number | undefined
    missingSecrets(sensor: Readonly<SensorRow>): readonly string[]
    outage(): string | undefined
  },
): Promise<WhyAnswer> {
  const { sensor_id } = definition
  const rows = known.rows()
  const evaluations = await latestEvaluations(known, sensor_id, { messageId, limit: TOLD_EVALUATIONS })
  const keys = new Set(evaluations.flatMap(({ run_keys }) => run_keys))
  const made = await known.coldRows(runKeyIndex).lookup([...keys].map((key) => [key]))
  const byKey = new Map(made.flatMap((row) => (row === undefined ? [] : [[row.run_key, row]])))
  const sensor = {
    definition,
    state: rows.hot(sensorState).get(sensor_id),
    everything: rows.hot(automationState).get(EVERYTHING),
    now: known.now(),
    polledAt: here.polledAt(sensor_id),
    outage: definition.has_code ? here.outage() : undefined,
    missingSecrets: here.missingSecrets(definition),
    evaluations,
    runsOf: (row: Readonly<SensorEvalRow>) => runsOfEvaluation(row, (key) => byKey.get(key)),
  }
  if (messageId === undefined) return whySensor(sensor)
  const row = await lookup(known, sensorMessages, sensor_id, messageId)
  const conflicts = await newestRows(known, sensorMessageConflicts, {
    where: [`sensor_id = ${quoteText(sensor_id)}`, `message_id = ${quoteText(messageId)}`],
    orderBy: 'body_hash',
    limit: MAX_CONFLICTS,
    keyColumns: ['sensor_id', 'message_id', 'body_hash'],
    keyOf: ({ sensor_id, message_id, body_hash }) => [sensor_id, message_id, body_hash],
    isAsked: (each) => each.sensor_id === sensor_id && each.message_id === messageId,
    comesFirst: (a, b) => a.body_hash < b.body_hash,
  })
  return whyMessage(sensor, { message_id: messageId, row, conflicts: conflicts.length })
}
