import { z } from 'zod'
import { toMs } from '../../lib/time.ts'
import { id, timestamp } from '../../model/envelope.ts'
import { applied, defineEvent, duplicate, ignored, waitFor } from '../../model/event.ts'
import { alertTrySubject } from '../subjects.ts'
import { editKnown } from '../typed-rows.ts'
import { alerts } from './alerts.table.ts'
import { pendingAlerts } from './pending-alerts.table.ts'

export const AlertTried = defineEvent({
  type: 'AlertTried',
  version: 1,
  doc: 'An alert was sent: it arrived, is sent again later, or is given up.',
  payload: z
    .object({
      alert_id: id,
      try: z.number().int().min(1).max(1_000),
      http_status: z.number().int().min(100).max(599).nullish(),
      error: z.string().max(1_024).nullish(),
      status: z.enum(['pending', 'delivered', 'failed']),
      next_try_at: timestamp.nullish(),
    })
    .refine(({ status, next_try_at }) => (status === 'pending') === (next_try_at != null), {
      path: ['next_try_at'],
      message: 'an alert that is pending is sent again at some time, and no other is',
    }),
  idempotencyKey: ({ alert_id, try: tried }) => `alert_tried:${alert_id}:${tried}`,
  dedup: 'structure',
  publishedWithOthers: true,
  reads: ({ alert_id }) => [{ table: alerts, key: [alert_id] }],
  ordered: [
    {
      with: ['AlertTried'],
      when: (mine, other) => mine.alert_id === other.alert_id,
      why: 'Once an alert has arrived or is given up, no other try counts.',
    },
  ],
  fold({ event, at, payload: { alert_id, try: tried, status, http_status, error, next_try_at }, rows }) {
    const known = rows.cold(alerts).lookup(alert_id)
    if (known?.status == null) return waitFor(alertTrySubject(alert_id))
    if ((known.tries ?? 0) >= tried) return duplicate
    if (known.status !== 'pending') return ignored('alert_settled')
    const nextTryAt = next_try_at == null ? null : toMs(next_try_at)
    rows.cold(alerts).merge({
      alert_id,
      tries: tried,
      status,
      http_status: http_status ?? null,
      error: error ?? null,
      tried_at: at,
      next_try_at: nextTryAt,
      row_version: event.event_id,
    })
    if (nextTryAt === null) rows.hot(pendingAlerts).remove(alert_id)
    else {
      const pending = editKnown(rows.hot(pendingAlerts), alert_id)
      pending.tries = tried
      pending.next_try_at = nextTryAt
      pending.row_version = event.event_id
    }
    return applied
  },
})
