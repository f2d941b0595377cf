import { col } from '../../model/column.ts'
import type { Rows } from '../../model/rows.ts'
import { defineTable } from '../../model/table.ts'

/** The one row: all schedules and sensors of the workspace. */
export const EVERYTHING = 'all'

export const automationState = defineTable({
  name: 'automation_state',
  doc: 'Whether automation is active.',
  key: ['scope'],
  storage: { kind: 'hot' },
  columns: {
    scope: col.string('Always `all`.'),
    status: col.oneOf(
      ['ACTIVE', 'PAUSED'],
      'While paused, no schedule ticks, no sensor is evaluated and no backfill plans a chunk.',
    ),
    status_changed_at: col.optional(col.timestamp('When it was paused or resumed.')),
    status_changed_by: col.optional(col.string('Who paused or resumed it.')),
    status_reason: col.optional(col.string('Why.')),
  },
})

/** True while everything that runs by itself is paused. */
export const isPaused = (rows: Rows): boolean => rows.hot(automationState).get(EVERYTHING)?.status === 'PAUSED'
