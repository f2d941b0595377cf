import { valueVersions } from '../../../domain/retention/value-versions.table.ts'
import type { Envelope } from '../../../model/envelope.ts'
import type { KnownRows } from '../known-rows.ts'

/**
 * True if the value that came with the end of an attempt was removed, so that nobody needs it in the ledger any more: whoever packs the
 * segment may leave it out, and keep its size and checksum.
 */
export async function isValueForgotten(
  known: Pick<KnownRows, 'coldRows'>,
  { event_id, payload }: Pick<Envelope, 'event_id' | 'payload'>,
): Promise<boolean> {
  const { task_key } = payload
  if (typeof task_key !== 'string') return false
  // As `taskKey` writes it. No key of an asset has a bracket.
  const [asset = '', partition = ''] = task_key.split(/\[(.*)\]$/s)
  const table = known.coldRows(valueVersions)
  const [row] = await table.lookup([[asset, event_id, partition]])
  // A task of a range has the name of the range, and its value is of each partition in it.
  const found = row ?? (await table.after([asset, event_id, ''], 1)).find((each) => each.event_id === event_id)
  return found?.removed_at != null
}
