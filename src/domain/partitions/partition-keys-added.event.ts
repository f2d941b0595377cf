import { defineEvent } from '../../model/event.ts'
import { foldKeyChange, keysChanged } from './dynamic-keys.ts'

export const PartitionKeysAdded = defineEvent({
  type: 'PartitionKeysAdded',
  version: 1,
  doc: 'Keys were added to a dynamic set of partitions.',
  payload: keysChanged,
  idempotencyKey: (added) => `partition_keys_added:${added.request_id}`,
  dedup: 'key',
  fold: (context) => foldKeyChange(context, true),
})
