import { col } from '../../model/column.ts'
import { defineTable, type Row } from '../../model/table.ts'

export const retentionState = defineTable({
  name: 'retention_state',
  doc: 'How far retention has come with each asset that declares `keep`: nothing before is looked at again while the rule stays.',
  key: ['asset_key'],
  storage: { kind: 'hot' },
  columns: {
    asset_key: col.string('The asset.'),
    versions: col.int('The rule by which it was looked at: how many versions of a partition are kept.'),
    days: col.int('How many days a value stays after it was pushed out.'),
    turn: col.int('How often that was put on record: the later word counts.'),
    passed_event_id: col.string('The last materialization that was looked at, by the event that reported it.'),
  },
})

export type RetentionStateRow = Row<typeof retentionState>
