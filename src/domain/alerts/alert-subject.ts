import { z } from 'zod'
import { id, timestamp } from '../../model/envelope.ts'
import { queueSafeId } from '../dispatch/dispatch-ids.ts'

/** What an alert is about, as precisely as it takes to raise it once. */
export const alertSubject = z.discriminatedUnion('type', [
  z.object({ type: z.literal('run'), run_id: id }),
  z.object({ type: z.literal('backfill'), backfill_id: id }),
  /** The latest tick that was late. */
  z.object({ type: z.literal('schedule'), schedule_id: id, tick: timestamp }),
  /** Since which error it has failed without a break. */
  z.object({ type: z.literal('sensor'), sensor_id: id, failing_since: timestamp }),
  z.object({ type: z.literal('asset'), asset_key: id, stale_since: timestamp }),
  z.object({ type: z.literal('test'), request_id: id }),
])
export type AlertSubject = z.infer<typeof alertSubject>

/** As much as a receiver needs to find the rest. */
export const alertFacts = z.record(
  z.string().max(64),
  z.union([z.string().max(2_048), z.number(), z.boolean(), z.array(z.string().max(512)).max(50)]),
)
export type AlertFacts = z.infer<typeof alertFacts>

/** The id of an alert: the same event in the same workspace, told to the same target, is the same alert. */
export const alertIdOf = (target: string, kind: string, subject: AlertSubject): string =>
  queueSafeId('alert', JSON.stringify([target, kind, ...Object.entries(subject).sort(([a], [b]) => (a < b ? -1 : 1))]))
