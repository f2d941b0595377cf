import { ServoError } from '../../lib/error.ts'
import { nearest } from '../../lib/nearest.ts'
import type { PartitionDefinition } from '../../partitions/definition.ts'
import type { RecordedGraph } from './definitions.ts'

/** The names of the dynamic sets that assets of the graph are made in. */
function dynamicSets({ graph, mappings }: RecordedGraph): Set<string> {
  const names = new Set<string>()
  // Assets of equal partitions share their definition, so each is looked at once.
  const definitions = new Set<PartitionDefinition | undefined>()
  for (const key of graph.assets.keys()) definitions.add(mappings.definition(key))
  for (const definition of definitions) {
    if (definition?.type === 'dynamic') names.add(definition.name)
    if (definition?.type !== 'multi') continue
    for (const dimension of Object.values(definition.dimensions)) if (dimension.type === 'dynamic') names.add(dimension.name)
  }
  return names
}

const SHOWN_SETS = 10

/** Refuses a set that no asset has: keys of a misspelt one would never be made. */
export function refuseUnknownSet(graph: RecordedGraph, name: string): void {
  const known = dynamicSets(graph)
  if (known.has(name)) return
  const meant = nearest(name, known)
  const all = [...known].sort()
  const there = `The sets are ${all.slice(0, SHOWN_SETS).join(', ')}${all.length > SHOWN_SETS ? ` and ${all.length - SHOWN_SETS} more` : ''}.`
  const none = "No asset has dynamic partitions. Declare one with partitions: dynamic('customers')."
  throw new ServoError('not_found', 'no_such_set', `dynamic set ${JSON.stringify(name.slice(0, 200))} not found`, {
    hint: all.length === 0 ? none : meant === undefined ? there : `Did you mean ${meant}? ${there}`,
  })
}
