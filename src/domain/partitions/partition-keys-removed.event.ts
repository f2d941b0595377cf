import { defineEvent } from '../../model/event.ts'
import { foldKeyChange, keysChanged } from './dynamic-keys.ts'

export const PartitionKeysRemoved = defineEvent({
  type: 'PartitionKeysRemoved',
  version: 1,
  doc: 'A dynamic set of partitions does not have these keys any more. What was made of them stays on record.',
  payload: keysChanged,
  idempotencyKey: (removed) => `partition_keys_removed:${removed.request_id}`,
  dedup: 'key',
  fold: (context) => foldKeyChange(context, false),
})
