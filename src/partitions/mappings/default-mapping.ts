import {
  type DimensionDefinition,
  isTime,
  type MultiDefinition,
  namesOf,
  type PartitionDefinition,
  sameDefinition,
} from '../definition.ts'
import { sameZone } from '../time/zone.ts'
import type { PartitionMapping, SimpleMapping } from './mapping.ts'

/** What a dependency means whose author said nothing; or why nothing can be guessed. */
export type DefaultMapping =
  | { readonly mapping: PartitionMapping; readonly reason?: undefined }
  | { readonly mapping?: undefined; readonly reason: string }

type Definition = PartitionDefinition | undefined

const overlap: SimpleMapping = { type: 'time_window', start_offset: 0, end_offset: 0 }

export function defaultMapping(downstream: Definition, upstream: Definition): DefaultMapping {
  if (downstream === undefined || upstream === undefined) return { mapping: { type: 'all' } }
  if (sameDefinition(downstream, upstream)) return { mapping: { type: 'identity' } }
  if (downstream.type === 'multi' && upstream.type === 'multi') return betweenDimensions(downstream, upstream)
  if (upstream.type === 'multi') return byOneDimension(upstream, downstream as DimensionDefinition)
  if (downstream.type === 'multi') return byOneDimension(downstream, upstream)
  if (isTime(downstream) && isTime(upstream))
    return sameZone(downstream.timezone, upstream.timezone)
      ? { mapping: overlap }
      : { reason: `windows in ${downstream.timezone} and in ${upstream.timezone} begin at other moments (mapping_zones)` }
  return { reason: `${downstream.type} and ${upstream.type} partitions are not the same: say how they belong together` }
}

/** Dimensions of the same name and kind belong together, all others are taken whole. */
function betweenDimensions(downstream: MultiDefinition, upstream: MultiDefinition): DefaultMapping {
  const dimensions: Record<string, { dimension: string; mapping: SimpleMapping }> = {}
  for (const name of namesOf(upstream)) {
    const above = upstream.dimensions[name] as DimensionDefinition
    const below = Object.hasOwn(downstream.dimensions, name) ? downstream.dimensions[name] : undefined
    if (below === undefined) continue
    const mapping = betweenNamesakes(below, above)
    if (mapping === 'zones') return { reason: `dimension ${name} has other time zones downstream and upstream (mapping_zones)` }
    if (mapping !== undefined) dimensions[name] = { dimension: name, mapping }
  }
  if (Object.keys(dimensions).length > 0) return { mapping: { type: 'multi', dimensions } }
  // Every partition would need every other: rarely meant, and dear when it is not.
  return { reason: `${namesOf(downstream).join(', ')} and ${namesOf(upstream).join(', ')} have no dimension in common` }
}

function betweenNamesakes(below: DimensionDefinition, above: DimensionDefinition): SimpleMapping | 'zones' | undefined {
  if (sameDefinition(below, above)) return { type: 'identity' }
  if (isTime(below) && isTime(above)) return sameZone(below.timezone, above.timezone) ? overlap : 'zones'
  // Lists may differ by a key or two; the name says that they are of the same things.
  return below.type === above.type ? { type: 'identity' } : undefined
}

/** The dimension that is defined as the single side is or, failing that, the one that is time as well. */
function byOneDimension(several: MultiDefinition, single: DimensionDefinition): DefaultMapping {
  const names = namesOf(several)
  const definitionOf = (name: string) => several.dimensions[name] as DimensionDefinition
  const same = names.filter((name) => sameDefinition(definitionOf(name), single))
  if (same.length === 1) return { mapping: { type: 'dimension', dimension: same[0] as string, mapping: { type: 'identity' } } }
  if (same.length > 1) return { reason: `${same.join(' and ')} are both defined like the ${single.type} partitions: say which` }
  const time = isTime(single) ? names.filter((name) => isTime(definitionOf(name))) : []
  const [only] = time
  if (only === undefined || time.length > 1)
    return { reason: `none of ${names.join(', ')} is defined like the ${single.type} partitions` }
  const of = definitionOf(only)
  return isTime(of) && isTime(single) && sameZone(of.timezone, single.timezone)
    ? { mapping: { type: 'dimension', dimension: only, mapping: overlap } }
    : { reason: `dimension ${only} is in another time zone than the ${single.type} partitions (mapping_zones)` }
}
