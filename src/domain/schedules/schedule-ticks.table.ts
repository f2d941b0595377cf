import { z } from 'zod'
import { tickStatuses } from '../../contract/automation-statuses.ts'
import { col } from '../../model/column.ts'
import { id, timestamp } from '../../model/envelope.ts'
import { defineTable } from '../../model/table.ts'

export const tickCauses = ['cron', 'catch_up', 'manual'] as const
export const skipCodes = ['paused', 'catchup_window', 'catchup_limit', 'overlap', 'no_window', 'condition'] as const
export const failCodes = ['bad_selection', 'condition_error'] as const
/** Why a tick asked for no run. Each has words in src/domain/why. */
export type TickReasonCode = (typeof skipCodes)[number] | (typeof failCodes)[number] | 'code_removed'

/** What a reason is made of, where its text alone does not say. */
export const reasonFacts = z.object({
  /** Who paused the schedule or all automation, when, and why. */
  paused_by: id.nullish(),
  paused_at: timestamp.nullish(),
  pause_reason: z.string().max(4_096).nullish(),
  is_everything: z.boolean().optional(),
  /** The unfinished run of an earlier tick. */
  run_id: id.optional(),
  /** How old a missed tick might be, and how many might run. */
  window_minutes: z.number().int().min(0).optional(),
  most: z.number().int().min(0).optional(),
})
export type ReasonFacts = z.infer<typeof reasonFacts>

/** How often a clock that was ahead had been set back when a tick was decided: what that clock had skipped is decided anew. */
export const clockTurn = z.number().int().min(0).default(0)
export const turnSuffix = ({ clock_turn }: { readonly clock_turn: number }): string =>
  clock_turn === 0 ? '' : `:${clock_turn}`

export const scheduleTicks = defineTable({
  name: 'schedule_ticks',
  doc: 'Ticks of schedules: triggered, or skipped or failed with the reason. Neighbours that were skipped together are one row.',
  key: ['tick_id'],
  storage: {
    kind: 'cold',
    expiresBy: 'scheduled_for',
    merge: [
      // Whatever is triggered later of ticks that were skipped together is taken out of their number.
      { pick: 'smallest', by: ['tick_count'], columns: ['tick_count'] },
      {
        pick: 'largest',
        // A tick that a clock ahead skipped is decided anew in its time. The ids of events follow the clock, and do not tell which came later.
        by: ['clock_turn', 'status', 'tick_event_id'],
        columns: [
          'clock_turn',
          'status',
          'tick_event_id',
          'schedule_id',
          'scheduled_for',
          'scheduled_until',
          'evaluated_at',
          'definition_version',
          'cron_expressions',
          'timezone',
          'asset_selection',
          'partition_selection',
          'cause',
          'reason_code',
          'reason',
          'reason_facts',
          'requested_by',
          'request_id',
          'run_key',
          'request_fingerprint',
        ],
      },
    ],
  },
  columns: {
    tick_id: col.string('{schedule_id}:{epoch}, {schedule_id}:{epoch}..{epoch} or {schedule_id}:manual:{request}.'),
    schedule_id: col.optional(col.string('The schedule.')),
    scheduled_for: col.optional(col.timestamp('The moment of the cron expression; of several, the first.')),
    scheduled_until: col.optional(col.timestamp('The last of several ticks that were skipped together.')),
    tick_count: col.optional(
      col.long(
        'How many ticks the row stands for: of several that were skipped together, those that were not triggered since.',
      ),
    ),
    clock_turn: col.optional(
      col.int('How often a clock that was ahead had been set back when this was decided: later decisions of a tick stand.'),
    ),
    evaluated_at: col.optional(col.timestamp('When the tick was recorded.')),
    definition_version: col.optional(col.string('The definition as it was then.')),
    cron_expressions: col.optional(
      col.strings('Of several ticks that were skipped together: the cron that they are ticks of.'),
    ),
    timezone: col.optional(col.string('The zone of that cron.')),
    asset_selection: col.optional(col.strings('What the definition selected then.')),
    partition_selection: col.optional(col.strings('Which partitions.')),
    status: col.optional(col.oneOf(tickStatuses, 'Triggered, skipped or failed.')),
    cause: col.optional(col.oneOf(tickCauses, 'Whether it was on time, caught up or requested by a user.')),
    reason_code: col.optional(col.string('Why it was skipped or failed, as a code.')),
    reason: col.optional(col.string('Why it was skipped or failed.')),
    reason_facts: col.optional(
      col.json<ReasonFacts>('Who paused it and when, the run in its way, the bounds of its catch-up.'),
    ),
    requested_by: col.optional(col.string('Who requested it, if the clock did not.')),
    request_id: col.optional(col.string('The id of that request, if it had one.')),
    run_key: col.optional(col.string('The run it requested.')),
    run_id: col.optional(col.string('That run, once requested.')),
    request_fingerprint: col.optional(col.string('Fingerprint of the request.')),
    tick_event_id: col.optional(col.string('The event that recorded it.')),
  },
})
