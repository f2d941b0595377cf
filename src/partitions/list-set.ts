import { itemAt } from '../lib/collections/item-at.ts'
import { nearest } from '../lib/nearest.ts'
import type { PartitionDefinition } from './definition.ts'
import { keysOf } from './key-list.ts'
import type { KeyProblem, PartitionSet } from './partition-set.ts'

/** How many keys an error message lists. */
const SHOWN_KEYS = 5

/** The keys of a list, in its order. */
export function listSet(definition: PartitionDefinition, list: readonly string[], owner: string): PartitionSet {
  let index: Map<string, number> | undefined
  const positionOf = (key: string): number | undefined => {
    index ??= new Map(list.map((listed, position) => [listed, position]))
    return index.get(key)
  }
  const set: PartitionSet = {
    definition,
    count: list.length,
    at: (position) => itemAt(list, position),
    positionOf,
    has: (key) => positionOf(key) !== undefined,
    keys: (from, to) => keysOf(set, from, to),
    problemOf: (key) => (set.has(key) ? undefined : unknownKey(key, list, owner)),
    dimensions: [],
  }
  return set
}

function unknownKey(key: string, list: readonly string[], owner: string): KeyProblem {
  const meant = nearest(key, list)
  const shown =
    list.length > SHOWN_KEYS ? `${list.slice(0, SHOWN_KEYS).join(', ')} and ${list.length - SHOWN_KEYS} more` : list.join(', ')
  const instead = meant === undefined ? `${owner} ${shown === '' ? 'no keys' : shown}` : `did you mean ${meant}?`
  return {
    code: 'unknown_key',
    message: `no partition ${key || '""'}; ${instead}`,
  }
}
