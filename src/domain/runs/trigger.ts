import { z } from 'zod'
import { id } from '../../model/envelope.ts'

/** The source of a request for a run. */
export const sourceRef = z.discriminatedUnion('type', [
  z.object({ type: z.literal('schedule'), schedule_id: id, tick_id: id }),
  z.object({ type: z.literal('sensor'), sensor_id: id, eval_id: id }),
  z.object({ type: z.literal('backfill'), backfill_id: id, chunk_id: id, chunk_index: z.number().int().min(0) }),
  z.object({ type: z.literal('manual'), user_id: id, request_id: id }),
  z.object({ type: z.literal('rerun'), run_id: id, request_id: id, mode: z.enum(['from_failure', 'subset', 'all']) }),
  z.object({ type: z.literal('automation'), asset_key: id, decision_id: id }),
])
export type SourceRef = z.infer<typeof sourceRef>

/** Keys that people choose live under `user:`; each kind of automation has its own prefix, so that none can take another's key. */
const prefixes: Record<SourceRef['type'], readonly string[]> = {
  schedule: ['sched:'],
  sensor: ['sensor:'],
  backfill: ['backfill:'],
  manual: ['manual:', 'user:'],
  rerun: ['rerun:'],
  automation: ['auto:'],
}

export function runKeyBelongsTo(runKey: string, source: SourceRef): boolean {
  return prefixes[source.type].some((prefix) => runKey.startsWith(prefix) && runKey.length > prefix.length)
}

export function runKeyPrefixes(source: SourceRef): readonly string[] {
  return prefixes[source.type]
}
