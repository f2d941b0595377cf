import { z } from 'zod'
import { hasNoControlCharacters } from '../lib/control-characters.ts'

/** A key of a dynamic set: any text of one line that is short enough to be part of an id. */
export const dynamicKey = z
  .string()
  .min(1)
  .max(512)
  .refine(hasNoControlCharacters, 'must not contain control characters')
  .refine((text) => text.isWellFormed(), 'must not contain half a surrogate pair')

/** Keys of dynamic sets, as the end of an attempt or the evaluation of a sensor reports them. */
const keysOfSets = z.array(z.object({ set_name: dynamicKey, keys: z.array(dynamicKey).min(1).max(10_000) })).max(100)
export type KeysOfSets = z.infer<typeof keysOfSets>

/** Changes of keys that come with another fact, and count if it does. */
export const reportedKeys = {
  /** Keys to add to dynamic sets. */
  partition_keys_added: keysOfSets.nullish(),
  /** Keys to remove from dynamic sets. A key that is both added and removed is added. */
  partition_keys_removed: keysOfSets.nullish(),
}
export interface ReportedKeys {
  readonly partition_keys_added?: KeysOfSets | null | undefined
  readonly partition_keys_removed?: KeysOfSets | null | undefined
}
