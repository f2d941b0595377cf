import { col } from '../../model/column.ts'
import { defineTable } from '../../model/table.ts'

const resolutions = ['SUCCESS', 'FAILED', 'SKIPPED', 'CANCELLED'] as const
export type EdgeResolution = (typeof resolutions)[number]

export const depSatisfaction = defineTable({
  name: 'dep_satisfaction',
  doc: 'One row per edge of a run: whether the upstream task satisfied it. Counting rows, not events, makes readiness safe against duplicates.',
  key: ['run_id', 'upstream_task_key', 'downstream_task_key'],
  storage: { kind: 'hot', sealedWith: 'runs' },
  columns: {
    run_id: col.string('The run.'),
    upstream_task_key: col.string('The task that must succeed first.'),
    downstream_task_key: col.string('The task that waits for it.'),
    satisfied: col.boolean('Whether upstream succeeded.'),
    resolution: col.optional(col.oneOf(resolutions, 'How upstream ended; null while it has not.')),
    satisfied_at: col.optional(col.timestamp('When upstream ended.')),
    satisfying_attempt: col.optional(col.int('The attempt that succeeded.')),
  },
})
