import {
  type DimensionDefinition,
  dimensionNames,
  dimensionOf,
  isTime,
  type PartitionDefinition,
  type Partitioning,
  timeDefinition,
} from '../definition.ts'
import { readKey, writeKey } from '../key.ts'
import { timeWindows } from '../time/windows.ts'
import { isLinked, linksOf } from './dimensions.ts'
import type { PartitionMapping, SimpleMapping } from './mapping.ts'
import { inDimension, type MappingProblem, shapeProblems } from './mapping-shape.ts'

/** How many keys an error message lists. */
const SHOWN_KEYS = 5

/** Everything that is wrong with a mapping between these definitions, before anything runs. */
export function checkMapping(mapping: PartitionMapping, downstream: Partitioning, upstream: Partitioning): MappingProblem[] {
  const problems = shapeProblems(mapping, downstream, upstream)
  if (problems.length > 0 || upstream === undefined) return problems
  if (!isLinked(mapping)) return keyProblems(mapping, downstream, upstream)
  if (downstream === undefined) return []
  return linksOf(mapping, downstream, upstream).flatMap((link) =>
    inDimension(
      link.upstream,
      keyProblems(link.mapping, dimensionOf(downstream, link.downstream), dimensionOf(upstream, link.upstream)),
    ),
  )
}

function keyProblems(mapping: SimpleMapping, downstream: Partitioning, upstream: Partitioning): MappingProblem[] {
  if (downstream !== undefined && mapping.type === 'identity' && downstream.type === 'keys')
    return strangers(downstream.keys, upstream, 'upstream')
  if (mapping.type === 'specific') return strangers(mapping.keys, upstream, 'upstream')
  if (mapping.type !== 'static') return []
  return [
    ...strangers(Object.keys(mapping.keys), upstream, 'upstream'),
    ...strangers(Object.values(mapping.keys).flat(), downstream, 'downstream'),
  ]
}

/** Keys that no partition of the definition can ever have. */
function strangers(keys: readonly string[], definition: Partitioning, side: string): MappingProblem[] {
  if (definition === undefined) return []
  const could = couldHave(definition)
  const wrong = [...new Set(keys)].filter((key) => !could(key))
  if (wrong.length === 0) return []
  const more = wrong.length > SHOWN_KEYS ? ` and ${wrong.length - SHOWN_KEYS} more` : ''
  return [
    {
      code: 'mapping_keys',
      message: `Partitions not found: ${wrong.slice(0, SHOWN_KEYS).join(', ')}${more} ${side}`,
      hint:
        definition.type === 'multi'
          ? `Write ${dimensionNames(definition).join('=…,')}=…, in this order and percent-encoded.`
          : `Use keys that the ${definition.type} partitions ${side} can have.`,
    },
  ]
}

function couldHave(definition: PartitionDefinition): (key: string) => boolean {
  if (definition.type !== 'multi') return couldHaveOne(definition)
  const names = dimensionNames(definition)
  const could = new Map(Object.entries(definition.dimensions).map(([name, dimension]) => [name, couldHaveOne(dimension)]))
  return (key) => {
    try {
      const values = Object.entries(readKey(key))
      // A table is looked up by text, so the text must be the one that partitions have.
      return (
        key === writeKey(Object.fromEntries(values)) &&
        values.length === names.length &&
        values.every(([name, value]) => could.get(name)?.(value) === true)
      )
    } catch {
      return false
    }
  }
}

function couldHaveOne(definition: DimensionDefinition): (key: string) => boolean {
  if (isTime(definition)) {
    const windows = timeWindows(timeDefinition(definition))
    return (key) => windows.positionOf(key) !== undefined
  }
  if (definition.type === 'dynamic') return () => true
  const keys = new Set(definition.keys)
  return (key) => keys.has(key)
}
