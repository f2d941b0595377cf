import { ServoError } from '../../lib/error.ts'
import { DAY_MS, toIso } from '../../lib/time.ts'
import type { AnyRow, Table } from '../../model/table.ts'
import type { ObjectStore } from '../../ports/object-store.ts'
import type { Manifest } from '../manifest/manifest.ts'
import { readEntries } from '../manifest/page-list.ts'

/** How many days rows are kept, by table. Without an entry a table is kept for ever. */
export type Retention = Readonly<Record<string, number>>

/** Queues may repeat a message for as long as they keep it: 31 days is the longest of those Servo works with. */
const IDEMPOTENCY_DAYS = 31
/** Below this a queue that keeps messages for a week could make Servo do something twice. */
const MIN_IDEMPOTENCY_DAYS = 7

export const defaultRetention: Retention = { idempotency_keys: IDEMPOTENCY_DAYS }

export function checkRetention(retention: Retention): Retention {
  if ((retention['idempotency_keys'] ?? 0) >= MIN_IDEMPOTENCY_DAYS) return retention
  throw new ServoError(
    'invalid',
    'retention_too_short',
    `idempotency keys must be kept for at least ${MIN_IDEMPOTENCY_DAYS} days`,
    { hint: 'Queues repeat messages for that long.' },
  )
}

/** For a cold table that expires, a predicate that is true for rows young enough to be kept. */
export function retentionCutoff(table: Table, retention: Retention, nowMs: number): ((row: AnyRow) => boolean) | undefined {
  const days = retention[table.name]
  const column = table.storage.kind === 'cold' ? table.storage.expiresBy : undefined
  if (days === undefined || column === undefined) return undefined
  const cutoff = nowMs - days * DAY_MS
  return (row) => row[column] === null || row[column] >= cutoff
}

/** For each table, the publish before which sealed history is too old to keep. It only moves forward, and reads only what it passes. */
export async function expiredHistory(
  store: ObjectStore,
  manifest: Manifest,
  retention: Retention,
  nowMs: number,
): Promise<Manifest['dropped']> {
  const dropped = { ...manifest.dropped }
  for (const [table, days] of Object.entries(retention)) {
    const cutoff = toIso(nowMs - days * DAY_MS)
    for await (const entry of readEntries(store, manifest.history, dropped[table] ?? 0)) {
      if (entry.sealed_at >= cutoff) break
      // Entries that hold nothing of this table are passed too, or every base would read them again.
      dropped[table] = entry.publish + 1
    }
  }
  return dropped
}
