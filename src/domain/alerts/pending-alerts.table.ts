import { alertKinds } from '../../contract/alert.ts'
import { col } from '../../model/column.ts'
import { defineTable, type Row } from '../../model/table.ts'
import type { AlertFacts } from './alert-subject.ts'

export const pendingAlerts = defineTable({
  name: 'pending_alerts',
  doc: 'Alerts that have not arrived yet. A row leaves when its alert has arrived or is given up.',
  key: ['alert_id'],
  storage: { kind: 'hot' },
  columns: {
    alert_id: col.string('The alert.'),
    target: col.string('The name of the alert in the config.'),
    kind: col.oneOf([...alertKinds, 'test'], 'What it is about.'),
    title: col.string('What happened, in a sentence.'),
    facts: col.json<AlertFacts>('What else is sent.'),
    raised_at: col.timestamp('When it was raised.'),
    tries: col.int('How often it was sent.'),
    next_try_at: col.timestamp('When it is sent again.'),
  },
})
export type PendingAlertRow = Row<typeof pendingAlerts>
