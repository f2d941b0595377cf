import { z } from 'zod'
import { type KeysOfSets, keysClockTurn, type ReportedKeys } from '../../contract/partition-keys.ts'
import { id } from '../../model/envelope.ts'
import { applied, type FoldContext, type Verdict } from '../../model/event.ts'
import type { Rows } from '../../model/rows.ts'
import type { Row } from '../../model/table.ts'
import { editKnown } from '../typed-rows.ts'
import { dynamicPartitions } from './dynamic-partitions.table.ts'

/** The keys a dynamic set has, sorted: their order does not depend on when each was added. */
export function dynamicKeysOf(rows: Rows): (name: string) => readonly string[] {
  return (name) => {
    const keys: string[] = []
    for (const { present, partition_key } of rows.hot(dynamicPartitions).under(name)) if (present) keys.push(partition_key)
    return keys.sort()
  }
}

/** The keys that sets will have once these changes count. */
export function withReportedKeys(
  keysOf: (name: string) => readonly string[],
  { partition_keys_added: added, partition_keys_removed: removed }: ReportedKeys,
): (name: string) => readonly string[] {
  const changes = [
    ...(removed ?? []).map((set) => ({ ...set, present: false })),
    ...(added ?? []).map((set) => ({ ...set, present: true })),
  ]
  if (changes.length === 0) return keysOf
  return (name) => {
    const keys = new Set(keysOf(name))
    for (const { set_name, keys: changed, present } of changes) {
      if (set_name !== name) continue
      for (const key of changed) {
        if (present) keys.add(key)
        else keys.delete(key)
      }
    }
    return [...keys].sort()
  }
}

/** The payload of adding and removing keys. */
export const keysChanged = z.object({
  request_id: id,
  set_name: id,
  keys: z.array(id).min(1).max(10_000),
  changed_by: id,
  clock_turn: keysClockTurn,
})

/** Who changed keys, and when. */
interface Said {
  readonly at: number
  readonly event_id: string
  readonly changed_by: string
  readonly clock_turn: number | null
}

/** The turn of a change of these keys: it counts, although a clock that was ahead may have recorded the change before. */
export function turnOfKeys(rows: Rows, sets: KeysOfSets, now: number): { clock_turn?: number } {
  let turn = 0
  for (const { set_name, keys } of sets) {
    for (const key of keys) {
      const known = rows.hot(dynamicPartitions).get(set_name, key)
      if (known !== undefined) turn = Math.max(turn, (known.clock_turn ?? 0) + (known.changed_at > now ? 1 : 0))
    }
  }
  return turn === 0 ? {} : { clock_turn: turn }
}

/** The same of keys that are reported with another fact. */
export function turnOfReported(rows: Rows, reported: ReportedKeys, now: number): { keys_clock_turn?: number } {
  const sets = [...(reported.partition_keys_added ?? []), ...(reported.partition_keys_removed ?? [])]
  const { clock_turn } = turnOfKeys(rows, sets, now)
  return clock_turn === undefined ? {} : { keys_clock_turn: clock_turn }
}

export function foldKeyChange(context: FoldContext<z.infer<typeof keysChanged>>, present: boolean): Verdict {
  const { event, at, payload, rows } = context
  const { changed_by, clock_turn = null } = payload
  const said = { at, event_id: event.event_id, changed_by, clock_turn }
  believe(rows, payload, present, said)
  // This holds even when a later fact about all of them was folded before: otherwise its repetition under a newer id would win.
  return applied
}

/** Applies the key changes that came with another fact, once that fact counts. */
export function applyReportedKeys(rows: Rows, reported: ReportedKeys, said: Said): void {
  for (const set of reported.partition_keys_added ?? []) believe(rows, set, true, said)
  for (const set of reported.partition_keys_removed ?? []) believe(rows, set, false, said)
}

/** The last fact about a key counts, in whatever order the facts are folded. */
function believe(
  rows: Rows,
  { set_name, keys }: { readonly set_name: string; readonly keys: readonly string[] },
  present: boolean,
  { at, event_id, changed_by, clock_turn }: Said,
): void {
  for (const partition_key of keys) {
    const known = rows.hot(dynamicPartitions).get(set_name, partition_key)
    const row = { set_name, partition_key, present, changed_at: at, changed_by, clock_turn, row_version: event_id }
    if (known !== undefined && !isLater(row, known)) continue
    if (known === undefined) rows.hot(dynamicPartitions).insert(row)
    else Object.assign(editKnown(rows.hot(dynamicPartitions), set_name, partition_key), row)
  }
}

type Change = Pick<Row<typeof dynamicPartitions>, 'clock_turn' | 'changed_at' | 'row_version'>

function isLater(change: Change, known: Readonly<Change>): boolean {
  const turns = (change.clock_turn ?? 0) - (known.clock_turn ?? 0)
  if (turns !== 0) return turns > 0
  return change.changed_at !== known.changed_at ? change.changed_at > known.changed_at : change.row_version > known.row_version
}
