import { toMs } from '../../lib/time.ts'
import type { NewEvent } from '../../model/event.ts'
import { idempotencyKeys } from '../../model/system-tables.ts'
import { type Knowledge, lookup } from './knowledge.ts'

/** The event that recorded a change, and when. */
export interface RecordedChange {
  /** Null when nothing was new. */
  readonly event_id: string | null
  readonly at: number
}

/** The event that recorded this fact when it was first reported; undefined if it is new. Such facts are remembered by their keys. */
export async function recordedBefore(
  known: Pick<Knowledge, 'coldRows'>,
  { definition, payload }: NewEvent,
): Promise<(RecordedChange & { event_id: string }) | undefined> {
  const parsed = definition.parse(payload)
  if (!parsed.success || definition.dedup !== 'key') return undefined
  const row = await lookup(known, idempotencyKeys, definition.idempotencyKey(parsed.data))
  return row === undefined ? undefined : { event_id: row.event_id, at: row.consumed_at }
}

/** Records a change, and says when: the same, however often one asks later. */
export async function recordChange(known: Knowledge, event: NewEvent): Promise<RecordedChange> {
  const { events, verdicts } = await known.submit([event])
  const [made] = events
  if (made !== undefined && verdicts[0]?.kind === 'applied') return { event_id: made.event_id, at: toMs(made.timestamp) }
  return (await recordedBefore(known, event)) ?? { event_id: null, at: known.now() }
}
