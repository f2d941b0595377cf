import { toIso } from '../../../lib/time.ts'
import { type NewEvent, newEvent } from '../../../model/event.ts'
import type { RequestRun } from '../../automation/request-run.ts'
import { RunCancelRequested } from '../../runs/run-cancel-requested.event.ts'
import type { ConditionAnswer } from '../conditions.ts'
import type { ScheduleRow } from '../schedule-definitions.table.ts'
import { ScheduleTicked } from '../schedule-ticked.event.ts'
import type { ReasonFacts, TickReasonCode } from '../schedule-ticks.table.ts'
import { runKeyOfTick, tickId } from './tick-ids.ts'
import { type GraphAtTick, workOfTick } from './work-of-tick.ts'

/** As many runs of a schedule as may be in the way of another that waits for them. */
const MAX_AWAITED = 1_000

export interface TickToDecide {
  readonly definition: Readonly<ScheduleRow>
  readonly tick: number
  readonly cause: 'cron' | 'catch_up' | 'manual'
  readonly at: GraphAtTick
  /** How often a clock that was ahead was set back so far. */
  readonly clockTurn: number
  /** The unfinished runs of the schedule; the run of this tick is added. */
  readonly open: Set<string>
  readonly requestRun: RequestRun
  /** What the code of the schedule says of the tick; undefined until it has. Absent if it is not asked. */
  readonly condition?: (() => ConditionAnswer | undefined) | undefined
  /** The id of a tick that the clock did not bring, and who asked for it. */
  readonly asked?: {
    readonly tick_id: string
    readonly requested_by: string
    readonly request_id?: string | undefined
    readonly skipped_in?: string | null
  }
}

/**
 * A tick and the run it asks for, or the reason why it asks for none: what belongs together is written together. Undefined while its
 * condition is not answered.
 */
export function tickEvents(deciding: TickToDecide): NewEvent[] | undefined {
  const { definition, tick, cause, at, open, requestRun, condition, asked } = deciding
  const { schedule_id, row_version, overlap, labels, priority } = definition
  const tick_id = asked?.tick_id ?? tickId(schedule_id, tick)
  const facts = {
    tick_id,
    schedule_id,
    scheduled_for: toIso(tick),
    definition_version: row_version,
    clock_turn: deciding.clockTurn,
    asset_selection: [...definition.asset_selection],
    partition_selection: definition.partition_selection && [...definition.partition_selection],
    cause,
    requested_by: asked?.requested_by ?? null,
    ...(asked !== undefined && {
      request_id: asked.request_id ?? null,
      skipped_in: asked.skipped_in ?? null,
      moments: { cron_expressions: [...definition.cron_expressions], timezone: definition.timezone },
    }),
  }
  const context = { causation_id: row_version, ...(asked && { actor: asked.requested_by }) }
  const without = (
    status: 'skipped' | 'failed',
    reason_code: TickReasonCode,
    reason: string,
    reason_facts?: ReasonFacts,
  ): NewEvent[] => [
    newEvent(ScheduleTicked, { ...facts, status, reason_code, reason: reason.slice(0, 4_096), reason_facts }, context),
  ]

  const inTheWay = [...open]
  const [first] = inTheWay
  if (overlap === 'skip' && first !== undefined && cause !== 'manual')
    return without('skipped', 'overlap', `${first} of an earlier tick had not ended`, { run_id: first })
  if (overlap === 'queue' && first !== undefined && inTheWay.length >= MAX_AWAITED)
    return without('skipped', 'overlap', `${inTheWay.length} runs of earlier ticks had not ended`, { run_id: first })
  const asksFor = workOfTick(definition, at)
  if ('noWindow' in asksFor) return without('skipped', 'no_window', asksFor.noWindow)
  if ('error' in asksFor) return without('failed', 'bad_selection', asksFor.error)
  const answer = condition === undefined ? ({ verdict: 'holds' } as const) : condition()
  if (answer === undefined || answer.verdict === 'unavailable') return undefined
  if (answer.verdict === 'failed') return without('failed', 'condition_error', answer.reason)
  if (answer.verdict === 'removed') return without('skipped', 'code_removed', answer.reason)
  if (answer.verdict === 'does not hold') return without('skipped', 'condition', answer.reason)

  const run_key = runKeyOfTick(tick_id)
  const work = { ...asksFor.work, labels }
  const waitsFor = overlap === 'queue' || overlap === 'replace' ? inTheWay.slice(-MAX_AWAITED) : []
  const { run_id, request_fingerprint, event } = requestRun({
    ...work,
    run_key,
    priority,
    source: { type: 'schedule', schedule_id, tick_id },
    ...(waitsFor.length > 0 && { after_run_ids: waitsFor }),
    ...context,
  })
  open.add(run_id)
  const cancelled = overlap === 'replace' ? inTheWay : []
  return [
    ...cancelled.map((id) =>
      newEvent(
        RunCancelRequested,
        { run_id: id, requested_by: `schedule:${definition.schedule_name}`, reason: `replaced by ${run_id}` },
        { correlation_id: id, causation_id: row_version },
      ),
    ),
    newEvent(
      ScheduleTicked,
      {
        ...facts,
        partition_selection: work.partition_selection && [...work.partition_selection],
        status: 'triggered',
        run_key,
        request_fingerprint,
      },
      context,
    ),
    event,
  ]
}
