import { toIso } from '../../lib/time.ts'
import type { RequestSummary } from '../runs/request-summary.ts'
import type { SourceRef } from '../runs/trigger.ts'
import { isoOrNull } from './iso.ts'
import { type Reason, reason } from './reasons.ts'
import type { TickRow } from './why-schedule.ts'

/** What is known of those who ask for runs. Records of ticks and evaluations expire; names do not. */
export interface Askers {
  scheduleName(id: string): string
  sensorName(id: string): string
  tick(id: string): TickRow | undefined
  evaluation(id: string): { readonly message_id: string | null; readonly requested_by: string | null } | undefined
  /** The request that made an earlier run. */
  request(runId: string): Pick<RequestSummary, 'source' | 'requested_at'> | undefined
}

/** A rerun of a rerun of a rerun is told this far back. */
const MAX_RERUNS = 10

/** Who asked for a run, and why they did. */
export function originOf(source: SourceRef, requestedAt: number, askers: Askers, depth = 0): Reason {
  const at = toIso(requestedAt)
  switch (source.type) {
    case 'schedule': {
      const tick = askers.tick(source.tick_id)
      const facts = {
        scheduled_for: isoOrNull(tick?.scheduled_for),
        cause: tick?.cause ?? null,
        by: tick?.requested_by ?? null,
      }
      return reason('asked_by_schedule', { schedule: askers.scheduleName(source.schedule_id), ...facts, at })
    }
    case 'sensor':
      return bySensor(source, at, askers)
    case 'backfill':
      return reason('asked_by_backfill', { backfill_id: source.backfill_id, chunk_index: source.chunk_index, at })
    case 'manual':
      return reason('asked_by_user', { user: source.user_id, at })
    case 'automation':
      return reason('asked_by_automation', { asset_key: source.asset_key, at })
    case 'rerun': {
      const asker = source.asked_by == null ? [] : [bySensor(source.asked_by, at, askers)]
      const { run_id, mode } = source
      return reason('asked_by_rerun', { run_id, mode, at }, [...asker, ...originOfEarlier(run_id, askers, depth)])
    }
  }
}

function bySensor({ sensor_id, eval_id }: { sensor_id: string; eval_id: string }, at: string, askers: Askers): Reason {
  const evaluation = askers.evaluation(eval_id)
  const facts = { message_id: evaluation?.message_id ?? null, by: evaluation?.requested_by ?? null }
  return reason('asked_by_sensor', { sensor: askers.sensorName(sensor_id), ...facts, at })
}

function originOfEarlier(runId: string, askers: Askers, depth: number): Reason[] {
  if (depth >= MAX_RERUNS) return []
  const earlier = askers.request(runId)
  if (earlier === undefined) return [reason('asked_long_ago', { run_id: runId })]
  return [originOf(earlier.source, earlier.requested_at, askers, depth + 1)]
}
