import { defineEvent } from '../../model/event.ts'
import { foldKeyChange, keysChanged } from './dynamic-keys.ts'

export const PartitionKeysRemoved = defineEvent({
  type: 'PartitionKeysRemoved',
  version: 1,
  doc: 'Keys were removed from a dynamic set of partitions. Their materializations stay on record.',
  payload: keysChanged,
  idempotencyKey: (removed) => `partition_keys_removed:${removed.request_id}`,
  dedup: 'key',
  fold: (context) => foldKeyChange(context, false),
})
