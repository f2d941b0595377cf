import { z } from 'zod'
import { id } from '../../model/envelope.ts'
import { applied, type FoldContext, ignored, type Verdict } from '../../model/event.ts'
import type { Rows } from '../../model/rows.ts'
import { dynamicPartitions } from './dynamic-partitions.table.ts'

/** The keys a dynamic set has, sorted: their order does not depend on when each was added. */
export function dynamicKeysOf(rows: Rows): (name: string) => readonly string[] {
  return (name) => {
    const keys: string[] = []
    for (const { present, partition_key } of rows.hot(dynamicPartitions).under(name)) if (present) keys.push(partition_key)
    return keys.sort()
  }
}

/** What adding and removing say. */
export const keysChanged = z.object({
  request_id: id,
  set_name: id,
  keys: z.array(id).min(1).max(10_000),
  changed_by: id,
})

/** Whoever spoke last about a key is believed, in whatever order it is heard. */
export function changeKeys(context: FoldContext<z.infer<typeof keysChanged>>, present: boolean): Verdict {
  const { event, at, payload, rows } = context
  let changed = false
  for (const key of payload.keys) {
    const known = rows.hot(dynamicPartitions).get(payload.set_name, key)
    if (known !== undefined && !isLater(at, event.event_id, known)) continue
    const row = {
      set_name: payload.set_name,
      partition_key: key,
      present,
      changed_at: at,
      changed_by: payload.changed_by,
      row_version: event.event_id,
    }
    if (known === undefined) rows.hot(dynamicPartitions).insert(row)
    else Object.assign(rows.hot(dynamicPartitions).edit(payload.set_name, key) as object, row)
    changed = true
  }
  return changed ? applied : ignored('changed_later')
}

const isLater = (at: number, eventId: string, known: { readonly changed_at: number; readonly row_version: string }): boolean =>
  at !== known.changed_at ? at > known.changed_at : eventId > known.row_version
