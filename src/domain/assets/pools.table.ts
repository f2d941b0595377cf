import { col } from '../../model/column.ts'
import { defineTable } from '../../model/table.ts'

export const pools = defineTable({
  name: 'pools',
  doc: 'Named concurrency limits, as the newest graph declares them.',
  key: ['pool'],
  storage: { kind: 'hot' },
  columns: {
    pool: col.string('Name of the pool in code.'),
    slots: col.optional(col.int('Tasks of the pool that workers may run at once; null if the newest graph no longer has it.')),
    defined_at: col.timestamp('When this declaration was recorded.'),
    clock_turn: col.optional(
      col.int(
        'How often a clock that was ahead had recorded the declaration before. A declaration of a later turn is the newer one.',
      ),
    ),
  },
})
