import { type SensorEvalRow, sensorEvals } from '../../../domain/sensors/sensor-evals.table.ts'
import { quoteText } from '../../../lib/sql/sql-text.ts'
import type { Knowledge } from '../knowledge.ts'
import { newestRows } from './newest-rows.ts'

const lastAt = (row: Readonly<SensorEvalRow>): number => row.evaluated_until ?? row.evaluated_at

/** The latest evaluations of a sensor, or of one message to it, the newest first. */
export async function latestEvaluations(
  known: Knowledge,
  sensorId: string,
  { messageId, limit }: { messageId?: string | undefined; limit: number },
): Promise<SensorEvalRow[]> {
  return await newestRows(known, sensorEvals, {
    where: [`sensor_id = ${quoteText(sensorId)}`, ...(messageId === undefined ? [] : [`message_id = ${quoteText(messageId)}`])],
    orderBy: 'coalesce(evaluated_until, evaluated_at) desc, eval_event_id desc',
    limit,
    keyColumns: ['eval_id'],
    keyOf: ({ eval_id }) => [eval_id],
    isAsked: (row) => row.sensor_id === sensorId && (messageId === undefined || row.message_id === messageId),
    comesFirst: (a, b) => lastAt(a) > lastAt(b) || (lastAt(a) === lastAt(b) && a.eval_event_id > b.eval_event_id),
  })
}
