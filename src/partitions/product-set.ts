import { isServoError, ServoError } from '../lib/error.ts'
import type { MultiDefinition } from './definition.ts'
import { type PartitionValues, valuesByDimension } from './key.ts'
import { keysOf, product } from './key-list.ts'
import type { Dimension, KeyProblem, PartitionSet } from './partition-set.ts'

/** Every combination of the keys of its dimensions; a position is a number whose digits are the positions in each. */
export function productSet(definition: MultiDefinition, unsorted: readonly Dimension[]): PartitionSet {
  const dimensions = [...unsorted].sort((a, b) => (a.name < b.name ? -1 : 1))
  const names = dimensions.map(({ name }) => name)
  const keys = product(dimensions.map(({ name, set }) => ({ name, keys: set })))
  const { count } = keys
  if (!Number.isSafeInteger(count))
    throw new ServoError('invalid', 'too_many_partitions', `${names.join(' × ')} would be ${count} partitions`, {
      hint: 'Remove a dimension, or make one of them coarser.',
      facts: Object.fromEntries(dimensions.map(({ name, set }) => [name, set.count])),
    })

  function positionOf(key: string): number | undefined {
    const values = read(names, key)
    if (isServoError(values)) return undefined
    let position = 0
    for (const { name, set } of dimensions) {
      const digit = set.positionOf(values[name] ?? '')
      if (digit === undefined) return undefined
      position = position * set.count + digit
    }
    return position
  }

  function problemOf(key: string): KeyProblem | undefined {
    const values = read(names, key)
    if (isServoError(values)) return { code: 'other_kind', message: `${values.message}. ${values.hint}` }
    for (const { name, set } of dimensions) {
      const problem = set.problemOf(values[name] ?? '')
      if (problem !== undefined) return { code: problem.code, message: `dimension ${name}: ${problem.message}` }
    }
    return undefined
  }

  const set: PartitionSet = {
    definition,
    count,
    at: keys.at,
    positionOf,
    has: (key) => positionOf(key) !== undefined,
    keys: (from, to) => keysOf(set, from, to),
    problemOf,
    dimensions,
  }
  return set
}

/** A key that cannot be read is a problem to report here, not one to throw. */
function read(names: readonly string[], key: string): PartitionValues | ServoError {
  try {
    return valuesByDimension(names, key)
  } catch (error) {
    if (isServoError(error, 'invalid')) return error
    throw error
  }
}
