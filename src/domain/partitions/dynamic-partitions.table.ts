import { col } from '../../model/column.ts'
import { defineTable } from '../../model/table.ts'

export const dynamicPartitions = defineTable({
  name: 'dynamic_partitions',
  doc: 'The keys of dynamic partitions: keys that exist, and keys that were removed.',
  key: ['set_name', 'partition_key'],
  storage: { kind: 'hot' },
  columns: {
    set_name: col.string('Name of the set in code.'),
    partition_key: col.string('The key.'),
    present: col.boolean('True if the set has the key now.'),
    changed_at: col.timestamp('When it was last added or removed.'),
    changed_by: col.string('By whom.'),
    clock_turn: col.optional(
      col.int('How often a clock that was ahead had recorded the change before. A change of a later turn is the newer one.'),
    ),
  },
})
