import { z } from 'zod'
import { hasNoControlCharacters } from '../lib/text/control-characters.ts'

/** A key of a dynamic set, or the name of one: any text of one line that is short enough to be part of an id. */
export const dynamicKey = z
  .string()
  .min(1)
  .max(512)
  .refine(hasNoControlCharacters, 'must not contain control characters')
  .refine((text) => text.isWellFormed(), 'must not contain half a surrogate pair')

/** As long as the key of an asset may be: both together are the name of a task. */
const MAX_NEW_KEY = 255

/** A key that can be added: one that requests can name, and tasks. Others may be on record, and can be removed. */
export const newKey = dynamicKey
  .refine((key) => key.length <= MAX_NEW_KEY, `must have at most ${MAX_NEW_KEY} characters, or no task could be named after it`)
  .refine((key) => key !== '*', 'must not be *, which stands for all partitions')
  .refine((key) => !key.includes('..'), 'must not contain .., which stands between the ends of a range')

/** As much of a key as a message shows. */
const SHOWN_CHARACTERS = 40

/** Why a key cannot be added, in a message that names it. Undefined when it can. */
export function whyNotAdded(key: string): string | undefined {
  if (newKey.safeParse(key).success) return undefined
  if (key === '') return 'a key cannot be empty'
  const name = `Key ${JSON.stringify(key.length > SHOWN_CHARACTERS ? `${key.slice(0, SHOWN_CHARACTERS)}…` : key)}`
  if (key.length > MAX_NEW_KEY) return `${name} is too long: ${key.length} characters, at most ${MAX_NEW_KEY}`
  return `${name} cannot be added: ${whyNotNamed(key)}`
}

function whyNotNamed(key: string): string {
  if (key === '*') return 'it stands for all partitions'
  if (key.includes('..')) return 'it contains "..", which stands between the ends of a range'
  return hasNoControlCharacters(key) ? 'it contains half a surrogate pair' : 'it contains control characters'
}

/** Keys of dynamic sets, as the end of an attempt or the evaluation of a sensor reports them. */
const keysOfSets = (key: typeof dynamicKey) =>
  z.array(z.object({ set_name: dynamicKey, keys: z.array(key).min(1).max(10_000) })).max(100)
export type KeysOfSets = z.infer<ReturnType<typeof keysOfSets>>

/** Changes of keys that come with another fact, and count if it does, as they are on record. */
export const recordedKeys = {
  /** Keys to add to dynamic sets. */
  partition_keys_added: keysOfSets(dynamicKey).nullish(),
  /** Keys to remove from dynamic sets. A key that is both added and removed is added. */
  partition_keys_removed: keysOfSets(dynamicKey).nullish(),
}
/** The same, as they are reported. */
export const reportedKeys = { ...recordedKeys, partition_keys_added: keysOfSets(newKey).nullish() }
/** Larger than that of the changes before if a clock that was ahead has recorded one of them. */
export const keysClockTurn = z.number().int().min(0).nullish()
export interface ReportedKeys {
  readonly partition_keys_added?: KeysOfSets | null | undefined
  readonly partition_keys_removed?: KeysOfSets | null | undefined
}
