import { dynamicKey, type KeysOfSets, newKey, type ReportedKeys } from '../../contract/partition-keys.ts'
import { invalid, show } from '../invalid.ts'
import { issuesText } from '../standard-schema.ts'
import { type DynamicPartitions, isPartitions } from './partitions.ts'

/** Keys of one dynamic set, to add or to remove. */
export interface KeysOfSet {
  readonly partitions: DynamicPartitions
  readonly keys: readonly string[]
}

/** Changes the keys of a dynamic set. The changes take effect if the attempt succeeds. */
export interface ChangeKeys {
  add(keys: readonly string[]): void
  remove(keys: readonly string[]): void
}

/** The most that one attempt may report: it becomes part of the event of its end. */
const MAX_KEYS = 10_000
const MAX_BYTES = 500_000
const MAX_SETS = 100

/** Collects the key changes of an attempt until it is over. The last change of a key counts. */
export class KeyChanges {
  readonly #sets = new Map<string, Map<string, 'added' | 'removed'>>()
  #count = 0
  #bytes = 0

  of(partitions: DynamicPartitions): ChangeKeys {
    const name = nameOf(partitions)
    return {
      add: (keys) => this.#take(name, keys, 'added'),
      remove: (keys) => this.#take(name, keys, 'removed'),
    }
  }

  /** The changes for the report of the attempt; empty without any. */
  reported(): ReportedKeys {
    const [added, removed] = [this.#all('added'), this.#all('removed')]
    return {
      ...(added.length > 0 && { partition_keys_added: added }),
      ...(removed.length > 0 && { partition_keys_removed: removed }),
    }
  }

  #take(name: string, keys: readonly string[], change: 'added' | 'removed'): void {
    const checked = checkedKeys(name, keys, change === 'added' ? newKey : dynamicKey)
    let known = this.#sets.get(name)
    if (known === undefined) {
      known = new Map()
      this.#sets.set(name, known)
    }
    for (const key of checked) {
      if (!known.has(key)) {
        this.#count += 1
        this.#bytes += Buffer.byteLength(key)
      }
      known.set(key, change)
    }
    this.#refuseTooMany()
  }

  #refuseTooMany(): void {
    if (this.#count <= MAX_KEYS && this.#bytes <= MAX_BYTES && this.#sets.size <= MAX_SETS) return
    throw invalid(
      'too_many_keys',
      `one attempt or evaluation changes ${this.#count} partition keys (${this.#bytes} bytes) of ${this.#sets.size} sets`,
      `The limit is ${MAX_KEYS} keys, ${MAX_BYTES} bytes and ${MAX_SETS} sets. Add the others with: servo partitions add`,
    )
  }

  #all(change: 'added' | 'removed'): KeysOfSets {
    return [...this.#sets].flatMap(([set_name, of]) => {
      const keys = [...of].filter(([, said]) => said === change).map(([key]) => key)
      return keys.length === 0 ? [] : [{ set_name, keys }]
    })
  }
}

function nameOf(partitions: unknown): string {
  if (isPartitions(partitions) && partitions.data.type === 'dynamic') return partitions.data.name
  throw invalid(
    'not_dynamic',
    `partitions(${isPartitions(partitions) ? partitions.data.type : show(partitions)}) is not a dynamic set`,
    "Pass the result of dynamic(): partitions(customers), where customers is dynamic('customers').",
  )
}

function checkedKeys(name: string, keys: unknown, schema: typeof dynamicKey): readonly string[] {
  if (!Array.isArray(keys))
    throw invalid(
      'bad_keys',
      `the keys of ${name} must be an array, not ${show(keys)}`,
      `Write partitions(${name}).add(['acme']).`,
    )
  const checked: string[] = []
  for (const key of keys) {
    const { data, error } = schema.safeParse(key)
    if (error === undefined) {
      checked.push(data)
      continue
    }
    const shown = show(key).slice(0, 60)
    throw invalid('bad_key', `${shown} is not a key of ${name}: ${issuesText(error.issues)}`, 'Use one line of text.')
  }
  return checked
}
