import { alertKinds } from '../../contract/alert.ts'
import { col } from '../../model/column.ts'
import { defineTable } from '../../model/table.ts'
import type { AlertSubject } from './alert-subject.ts'

export const alertStatuses = ['pending', 'delivered', 'failed'] as const

export const alerts = defineTable({
  name: 'alerts',
  doc: 'Alerts that were raised, to whom they went, and whether they arrived. What was sent is not kept, and addresses and secrets never are.',
  key: ['alert_id'],
  storage: {
    kind: 'cold',
    merge: [
      {
        // A later try says more than an earlier one, whichever is heard of first.
        pick: 'largest',
        by: ['tries'],
        columns: ['tries', 'status', 'http_status', 'error', 'tried_at', 'next_try_at', 'row_version'],
      },
    ],
    expiresBy: 'raised_at',
  },
  columns: {
    alert_id: col.string('The same for the same alert, and the `webhook-id` of every try.'),
    target: col.optional(col.string('The name of the alert in the config.')),
    kind: col.optional(col.oneOf([...alertKinds, 'test'], 'What it is about.')),
    subject: col.optional(col.json<AlertSubject>('The run, backfill, schedule, sensor or asset.')),
    title: col.optional(col.string('What happened, in a sentence.')),
    raised_at: col.optional(col.timestamp('When it was raised.')),
    status: col.optional(col.oneOf(alertStatuses, 'pending until it arrives, or is given up as failed.')),
    tries: col.optional(col.int('How often it was sent.')),
    tried_at: col.optional(col.timestamp('When it was last sent.')),
    http_status: col.optional(col.int('The status of the last answer; null if there was none.')),
    error: col.optional(col.string('Why the last try did not arrive.')),
    next_try_at: col.optional(col.timestamp('When it is sent again; null if it is not.')),
  },
})
