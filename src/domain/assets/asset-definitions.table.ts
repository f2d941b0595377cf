import { col } from '../../model/column.ts'
import { defineTable } from '../../model/table.ts'

export const assetDefinitions = defineTable({
  name: 'asset_definitions',
  doc: 'The assets of the newest graph, as their authors declared them.',
  key: ['asset_key'],
  storage: { kind: 'hot' },
  columns: {
    asset_key: col.string('Name of the asset in code.'),
    asset_id: col.string('Stable id that survives renaming.'),
    graph_version: col.string('Version of the graph that last changed it.'),
    code_version: col.optional(col.string('Version of its code.')),
    definition: col.json('Inputs, partitions, policies and the rest of the declaration.'),
    renamed_from: col.optional(col.string('Its former key.')),
    removed: col.boolean('True if the newest graph no longer has it.'),
    partitions_varied: col.optional(
      col.boolean('True if its partitions were ever declared differently, so that older keys may be on record.'),
    ),
    defined_at: col.timestamp('When this declaration was recorded.'),
    clock_turn: col.optional(
      col.int(
        'How often a clock that was ahead had recorded the declaration before. A declaration of a later turn is the newer one.',
      ),
    ),
  },
})
