import { z } from 'zod'
import { id } from '../../model/envelope.ts'

/** All of a state, or those of a range. */
const within = { start: id.nullish(), end: id.nullish() }

/** Which partitions a backfill is asked for. How many that are does not matter: it stays small. */
export const partitionSelector = z.discriminatedUnion('type', [
  z.object({ type: z.literal('all') }),
  /** From one key to another, both included. */
  z.object({ type: z.literal('range'), start: id, end: id }),
  z.object({ type: z.literal('explicit'), partition_keys: z.array(id).min(1).max(10_000) }),
  /** Dimension → a key, in which `*` stands for any text. Assets of one dimension call it `partition`. */
  z.object({ type: z.literal('filter'), filters: z.record(id, id) }),
  z.object({ type: z.literal('missing'), ...within }),
  z.object({ type: z.literal('failed'), ...within }),
  z.object({ type: z.literal('stale'), ...within }),
  /** What failed in the parent, and what was skipped because of that. */
  z.object({ type: z.literal('retry_failed') }),
])
export type PartitionSelector = z.infer<typeof partitionSelector>
