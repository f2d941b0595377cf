import { defineEvent } from '../../model/event.ts'
import { foldKeyChange, keysChanged } from './dynamic-keys.ts'

export const PartitionKeysAdded = defineEvent({
  type: 'PartitionKeysAdded',
  version: 1,
  doc: 'A dynamic set of partitions has these keys from now on.',
  payload: keysChanged,
  idempotencyKey: (added) => `partition_keys_added:${added.request_id}`,
  dedup: 'key',
  fold: (context) => foldKeyChange(context, true),
})
