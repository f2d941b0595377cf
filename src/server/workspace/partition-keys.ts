import type { AcceptedKeys, KeyPage, KeysBody } from '../../api/asset-contract.ts'
import type { PageQuery } from '../../api/request/list-query.ts'
import { whyNotAdded } from '../../contract/partition-keys.ts'
import { refuseUnknownSet } from '../../domain/assets/dynamic-sets.ts'
import { inParts } from '../../domain/event-parts.ts'
import { dynamicKeysOf, turnOfKeys } from '../../domain/partitions/dynamic-keys.ts'
import { dynamicPartitions } from '../../domain/partitions/dynamic-partitions.table.ts'
import { PartitionKeysAdded } from '../../domain/partitions/partition-keys-added.event.ts'
import { PartitionKeysRemoved } from '../../domain/partitions/partition-keys-removed.event.ts'
import { ServoError } from '../../lib/error.ts'
import { canonicalJson } from '../../lib/json.ts'
import { toIso } from '../../lib/time.ts'
import { type NewEvent, newEvent } from '../../model/event.ts'
import { idempotencyKeys } from '../../model/system-tables.ts'
import { type Knowledge, lookup, record } from './knowledge.ts'
import { pageOf } from './page.ts'

/** The keys that a dynamic set has now. */
export function partitionKeysPage(known: Knowledge, setName: string, query: PageQuery): KeyPage {
  refuseUnknownSet(known.graph.get(), setName)
  const all = dynamicKeysOf(known.rows())(setName)
  const { names, next_cursor } = pageOf(all, query)
  const rows = known.rows().hot(dynamicPartitions)
  const keys = names.flatMap((partition_key) => {
    const row = rows.get(setName, partition_key)
    return row === undefined ? [] : [{ partition_key, changed_at: toIso(row.changed_at), changed_by: row.changed_by }]
  })
  return { set_name: setName, keys, total: all.length, next_cursor }
}

/** Adds keys to a dynamic set and removes others, where that changes anything. */
export async function changePartitionKeys(
  known: Knowledge,
  setName: string,
  { add = [], remove = [], request_id }: KeysBody,
  user: string,
): Promise<AcceptedKeys> {
  refuseUnknownSet(known.graph.get(), setName)
  const [wanted, unwanted] = [new Set(add), new Set(remove)]
  refuseNonsense(wanted, unwanted)
  const id = request_id ?? known.mintId()
  const total = wanted.size + unwanted.size
  const nothing = { set_name: setName, request_id: id, added: 0, removed: 0, accepted_event_id: null, created: false }
  // The fold alone cannot detect this: a repeated request may be cut into other parts if keys have changed since.
  if (request_id !== undefined && (await wasMade(known, request_id))) return { ...nothing, unchanged: total }
  const rows = known.rows().hot(dynamicPartitions)
  const isPresent = (key: string): boolean => rows.get(setName, key)?.present === true
  const added = [...wanted].filter((key) => !isPresent(key))
  const removed = [...unwanted].filter(isPresent)
  const unchanged = total - added.length - removed.length
  const turn = turnOfKeys(known.rows(), [{ set_name: setName, keys: [...added, ...removed] }], known.now())
  const said = { set_name: setName, changed_by: user, ...turn }
  const events = [
    ...partsOf(added, id).map((part) => newEvent(PartitionKeysAdded, { ...said, ...part }, { actor: user })),
    ...partsOf(removed, id).map((part) => newEvent(PartitionKeysRemoved, { ...said, ...part }, { actor: user })),
  ] satisfies NewEvent[]
  if (events.length === 0) return { ...nothing, unchanged }
  const { event_id, news } = await record(known, events)
  if (news === 0) return { ...nothing, unchanged: total }
  const changed = { added: added.length, removed: removed.length, unchanged }
  return { ...nothing, ...changed, accepted_event_id: event_id, created: true }
}

async function wasMade(known: Knowledge, requestId: string): Promise<boolean> {
  const first = { request_id: requestId, set_name: '', keys: [], changed_by: '' }
  for (const { idempotencyKey } of [PartitionKeysAdded, PartitionKeysRemoved])
    if ((await lookup(known, idempotencyKeys, idempotencyKey(first))) !== undefined) return true
  return false
}

/** Cuts keys into parts that fit into one event. The first part has the id of the request, the others ids derived from it. */
function partsOf(keys: readonly string[], requestId: string): { request_id: string; keys: string[] }[] {
  const parts = inParts(keys, keys.map(canonicalJson), (key) => `the key ${key}`)
  return parts.map((part, index) => ({ request_id: index === 0 ? requestId : `${requestId}:${index}`, keys: part }))
}

function refuseNonsense(add: ReadonlySet<string>, remove: ReadonlySet<string>): void {
  if (add.size + remove.size === 0) {
    throw new ServoError('invalid', 'no_keys', 'the request names no key', { hint: 'Name keys to add or to remove.' })
  }
  for (const key of add) {
    const why = whyNotAdded(key)
    if (why !== undefined)
      throw new ServoError('invalid', 'bad_body', why, { hint: 'Choose another key.', facts: { field: 'add' } })
    if (!remove.has(key)) continue
    throw new ServoError('invalid', 'bad_body', `the request both adds and removes ${key}`, {
      hint: 'Choose one, or make two requests.',
      facts: { field: 'remove' },
    })
  }
}
