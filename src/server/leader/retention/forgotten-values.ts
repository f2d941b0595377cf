import { valueVersions } from '../../../domain/retention/value-versions.table.ts'
import type { Envelope } from '../../../model/envelope.ts'
import type { KnownRows } from '../known-rows.ts'

type Finished = Pick<Envelope, 'event_id' | 'payload'>

/**
 * Which of the values that came with the end of an attempt were removed, so that nobody needs them in the ledger any more: whoever packs
 * their segments may leave them out, and keep their sizes and checksums.
 */
export async function forgottenValues(
  known: Pick<KnownRows, 'coldRows'>,
  events: readonly Finished[],
): Promise<readonly boolean[]> {
  const table = known.coldRows(valueVersions)
  const keys = events.map(keyOf)
  const rows = await table.lookup(keys)
  return await Promise.all(
    keys.map(async ([asset, event_id], i) => {
      // A task of a range has the name of the range, and its value is of each partition in it.
      const row = rows[i] ?? (await table.after([asset, event_id, ''], 1)).find((each) => each.event_id === event_id)
      return row?.removed_at != null
    }),
  )
}

/** As `taskKey` writes it. No key of an asset has a bracket. */
function keyOf({ event_id, payload: { task_key } }: Finished): [string, string, string] {
  const [asset = '', partition = ''] = String(task_key).split(/\[(.*)\]$/s)
  return [asset, event_id, partition]
}
