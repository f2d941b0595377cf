import { z } from 'zod'
import { toMs } from '../../lib/time.ts'
import { id, partitionKey, textMap, timestamp } from '../../model/envelope.ts'
import { applied, defineEvent } from '../../model/event.ts'
import { noteReport } from '../sensors/happenings/happenings.ts'
import { dataVersions } from './data-versions.table.ts'
import { orderOf } from './order.ts'
import { partitionStatus } from './partition-status.table.ts'

export const MaterializationReported = defineEvent({
  type: 'MaterializationReported',
  version: 1,
  doc: 'A program outside Servo reported that it materialized a partition.',
  payload: z.object({
    report_id: id,
    asset_key: id,
    partition_key: partitionKey.default(''),
    partition_values: textMap.nullish(),
    materialized_at: timestamp,
    materialization_id: id.nullish(),
    code_version: id.nullish(),
    /** Equal data has equal versions. */
    data_version: id.nullish(),
    reported_by: id,
    /** Further facts about it, kept with the event. */
    metadata: z.record(z.string(), z.unknown()).nullish(),
  }),
  idempotencyKey: (report) => `materialization_report:${report.report_id}`,
  dedup: 'key',
  fold({ event, at: receivedAt, payload: report, rows }) {
    const at = toMs(report.materialized_at)
    const order = orderOf(event, receivedAt, at)
    rows.cold(partitionStatus).merge({
      asset_key: report.asset_key,
      partition_key: report.partition_key,
      partition_values: report.partition_values ?? null,
      last_materialization_run_id: null,
      last_materialization_id: report.materialization_id ?? null,
      last_materialization_path: null,
      last_materialization_at: at,
      last_materialization_order: order,
      last_materialization_code_version: report.code_version ?? null,
      last_materialization_data_version: report.data_version ?? null,
      last_materialization_inputs_at: at,
      last_materialization_inputs_order: order,
      last_materialization_event_id: event.event_id,
      row_version: event.event_id,
    })
    rows.cold(dataVersions).merge({
      asset_key: report.asset_key,
      partition_key: report.partition_key,
      event_id: event.event_id,
      materialized_at: at,
      materialized_order: order,
      data_version: report.data_version ?? null,
      row_version: event.event_id,
    })
    noteReport(rows, report, { at, eventId: event.event_id })
    return applied
  },
})
