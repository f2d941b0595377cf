import { z } from 'zod'
import { id } from '../../model/envelope.ts'
import { applied, defineEvent, duplicate, ignored, waitFor } from '../../model/event.ts'
import { backfillSubject } from '../subjects.ts'
import { editKnown, raiseVersion } from '../typed-rows.ts'
import { backfills, isBackfillOver, withRequest } from './backfills.table.ts'

export const BackfillSettingsChanged = defineEvent({
  type: 'BackfillSettingsChanged',
  version: 1,
  doc: 'A user changed how a backfill goes on: how many runs at a time, how urgent they are, or how many may fail.',
  payload: z.object({
    backfill_id: id,
    /** One more than the version this change was decided on. */
    settings_version: z.number().int().min(2),
    max_concurrent_runs: z.number().int().min(1).max(1_000),
    /** Of the runs that are planned from now on. */
    priority: z.number().int().min(-1_000).max(1_000),
    /** Absent when any number may fail. */
    stop_after_failures: z.number().int().min(1).nullish(),
    changed_by: id,
    request_id: id,
  }),
  idempotencyKey: (change) => `backfill_settings:${change.backfill_id}:${change.settings_version}`,
  dedup: 'structure',
  about: (change) => ({ owner: 'backfills', id: change.backfill_id }),
  ordered: [
    {
      with: ['BackfillSettingsChanged'],
      when: (mine, other) => mine.backfill_id === other.backfill_id && mine.settings_version === other.settings_version,
      why: 'Compare-and-swap on the version of the settings: of two changes of one version the first counts.',
    },
  ],
  fold({ event, at, payload: change, rows, wake }) {
    const known = rows.hot(backfills).get(change.backfill_id)
    if (known === undefined) return waitFor(backfillSubject(change.backfill_id))
    const version = known.settings_version ?? 1
    if (known.change_requests.some(({ request_id }) => request_id === change.request_id)) return duplicate
    if (change.settings_version <= version) return ignored('stale_settings_version')
    if (isBackfillOver(known.state)) return ignored('backfill_over')
    if (change.settings_version > version + 1) return waitFor(backfillSubject(change.backfill_id))
    const backfill = editKnown(rows.hot(backfills), change.backfill_id)
    backfill.settings_version = change.settings_version
    backfill.max_concurrent_runs = change.max_concurrent_runs
    backfill.priority = change.priority
    backfill.stop_after_failures = change.stop_after_failures ?? null
    backfill.change_requests = withRequest(backfill, { request_id: change.request_id, event_id: event.event_id, at })
    raiseVersion(backfill, event.event_id)
    wake(backfillSubject(change.backfill_id))
    return applied
  },
})
