import { toMs } from '../../lib/time.ts'
import type { State } from '../fold/state.ts'
import type { L0Limits, Manifest } from '../manifest/manifest.ts'

/** From this many changed rows on it pays to check whether most belong to ended work: a base writes those once, a delta only for now. */
const SEAL_AT_ROWS = 5_000
/** Rows that one small run has in all tables. */
const ROWS_PER_OWNER = 12

/**
 * True if the next publish should be a base: there are too many deltas, rows or segments since the last base, the oldest delta is too
 * old, or most changed rows belong to ended work.
 */
export function isBaseDue(
  { l0, l0_rows }: Manifest,
  limits: L0Limits,
  state: State,
  unpublishedSegments: number,
  nowMs: number,
): boolean {
  const segments = l0.reduce((sum, delta) => sum + delta.segments.length, unpublishedSegments)
  const changed = changedRows(state)
  if (l0_rows + changed >= limits.max_rows || segments >= limits.max_segments) return true
  if (changed >= SEAL_AT_ROWS && endedOwners(state) >= changed / ROWS_PER_OWNER) return true
  const oldest = l0[0]
  if (oldest === undefined) return false
  return l0.length + 1 >= limits.max_count || nowMs - toMs(oldest.published_at) >= limits.max_age_ms
}

function endedOwners(state: State): number {
  let owners = 0
  for (const _ of state.ended()) owners += 1
  return owners
}

function changedRows(state: State): number {
  let rows = 0
  for (const hot of state.hotTables.values()) rows += hot.dirty.size + hot.removed.size
  for (const cold of state.coldTables.values()) rows += cold.dirty.size
  return rows
}
