import { z } from 'zod'
import { alertKinds } from '../../contract/alert.ts'
import { toMs } from '../../lib/time.ts'
import { id } from '../../model/envelope.ts'
import { applied, defineEvent, duplicate, waitFor } from '../../model/event.ts'
import type { Rows } from '../../model/rows.ts'
import { backfills } from '../backfills/backfills.table.ts'
import { runs } from '../runs/runs.table.ts'
import { alertTrySubject, backfillSubject, runSubject } from '../subjects.ts'
import { editKnown, raiseVersion } from '../typed-rows.ts'
import { alertMarks } from './alert-marks.table.ts'
import { type AlertSubject, alertFacts, alertIdOf, alertSubject } from './alert-subject.ts'
import { alerts } from './alerts.table.ts'
import { pendingAlerts } from './pending-alerts.table.ts'

export const AlertRaised = defineEvent({
  type: 'AlertRaised',
  version: 1,
  doc: 'Somebody is to be told of something. The alert is sent once this is on record.',
  payload: z.object({
    target: id,
    kind: z.enum([...alertKinds, 'test']),
    subject: alertSubject,
    title: z.string().min(1).max(1_024),
    facts: alertFacts.default({}),
  }),
  idempotencyKey: ({ target, kind, subject }) => `alert:${alertIdOf(target, kind, subject)}`,
  dedup: 'structure',
  about: ({ subject }) => {
    if (subject.type === 'run') return { owner: 'runs', id: subject.run_id }
    return subject.type === 'backfill' ? { owner: 'backfills', id: subject.backfill_id } : undefined
  },
  reads: ({ target, kind, subject }) => [{ table: alerts, key: [alertIdOf(target, kind, subject)] }],
  fold({ event, at, payload: { target, kind, subject, title, facts }, rows, wake }) {
    const alert_id = alertIdOf(target, kind, subject)
    if (rows.cold(alerts).lookup(alert_id) !== undefined) return duplicate
    const early = markRaised(rows, subject, at, event.event_id)
    if (early !== undefined) return waitFor(early)
    const told = { alert_id, target, kind, title, raised_at: at, row_version: event.event_id }
    rows.cold(alerts).merge({ ...told, subject, status: 'pending', tries: 0, next_try_at: at })
    rows.hot(pendingAlerts).insert({ ...told, facts, tries: 0, next_try_at: at })
    wake(alertTrySubject(alert_id))
    return applied
  },
})

/** Notes that it was told of. Returns what the alert must wait for, if its subject is not known yet. */
function markRaised(rows: Rows, subject: AlertSubject, at: number, eventId: string): string | undefined {
  switch (subject.type) {
    case 'run': {
      const { run_id } = subject
      if (rows.hot(runs).get(run_id) === undefined) return runSubject(run_id)
      const run = editKnown(rows.hot(runs), run_id)
      run.alerted_at = Math.min(run.alerted_at ?? at, at)
      raiseVersion(run, eventId)
      return undefined
    }
    case 'backfill': {
      const { backfill_id } = subject
      if (rows.hot(backfills).get(backfill_id) === undefined) return backfillSubject(backfill_id)
      const backfill = editKnown(rows.hot(backfills), backfill_id)
      backfill.alerted_at = Math.min(backfill.alerted_at ?? at, at)
      raiseVersion(backfill, eventId)
      return undefined
    }
    case 'schedule':
      mark(rows, `schedule:${subject.schedule_id}`, toMs(subject.tick), eventId)
      return undefined
    case 'sensor':
      mark(rows, `sensor:${subject.sensor_id}`, toMs(subject.failing_since), eventId)
      return undefined
    case 'asset':
      mark(rows, `asset:${subject.asset_key}`, toMs(subject.stale_since), eventId)
      return undefined
    case 'test':
      return undefined
  }
}

function mark(rows: Rows, subject: string, raised_for: number, eventId: string): void {
  const known = rows.hot(alertMarks).get(subject)
  if (known === undefined) rows.hot(alertMarks).insert({ subject, raised_for, row_version: eventId })
  else if (raised_for > known.raised_for || (raised_for === known.raised_for && eventId < known.row_version))
    Object.assign(editKnown(rows.hot(alertMarks), subject), { raised_for, row_version: eventId })
}
