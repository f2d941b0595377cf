import { col } from '../../model/column.ts'
import { defineTable } from '../../model/table.ts'

export const alertMarks = defineTable({
  name: 'alert_marks',
  doc: 'Up to when alerts about a schedule, a sensor or an asset were raised, so that none is raised twice.',
  key: ['subject'],
  storage: { kind: 'hot' },
  columns: {
    subject: col.string('`schedule:`, `sensor:` or `asset:` and its id.'),
    raised_for: col.timestamp('The late tick, the first error, or since when the asset is stale.'),
  },
})
