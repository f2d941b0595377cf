import {
  type DimensionDefinition,
  dimensionNames,
  dimensionsOf,
  isTime,
  type MultiDefinition,
  type Partitioning,
  sameDefinition,
} from '../definition.ts'
import { sameZone } from '../time/same-zone.ts'
import type { PartitionMapping, SimpleMapping } from './mapping.ts'

/** The default mapping of a dependency, or the reason why there is none. */
export type DefaultMapping =
  | { readonly mapping: PartitionMapping; readonly reason?: undefined }
  | { readonly mapping?: undefined; readonly reason: string }

const overlap: SimpleMapping = { type: 'time_window', start_offset: 0, end_offset: 0 }

/** The names of both assets, as the reason has them. */
type Names = readonly [downstream: string, upstream: string]

export function defaultMapping(
  downstream: Partitioning,
  upstream: Partitioning,
  [below, above]: Names = ['it', 'the upstream asset'],
): DefaultMapping {
  if (downstream === undefined || upstream === undefined) return { mapping: { type: 'all' } }
  if (sameDefinition(downstream, upstream)) return { mapping: { type: 'identity' } }
  if (upstream.type === 'multi')
    return downstream.type === 'multi' ? betweenDimensions(downstream, upstream) : byOneDimension(upstream, downstream)
  if (downstream.type === 'multi') return byOneDimension(downstream, upstream)
  if (isTime(downstream) && isTime(upstream))
    return sameZone(downstream.timezone, upstream.timezone)
      ? { mapping: overlap }
      : { reason: `windows in ${downstream.timezone} and in ${upstream.timezone} begin at different times (mapping_zones)` }
  return { reason: `${below} is partitioned by ${wordFor(downstream)} and ${above} by ${wordFor(upstream)}: say how they map` }
}

const UNITS: Readonly<Record<string, string>> = {
  minutely: 'minute',
  hourly: 'hour',
  daily: 'day',
  weekly: 'week',
  monthly: 'month',
  quarterly: 'quarter',
  yearly: 'year',
}

/** `day` for daily windows. Two lists of keys are both called keys, so one that has a name is called by it. */
function wordFor(definition: DimensionDefinition): string {
  if (definition.type === 'keys') return 'keys'
  return definition.type === 'dynamic' ? `the keys of ${definition.name}` : (UNITS[definition.type] ?? definition.type)
}

/** Dimensions of the same name and kind belong together, all others are taken whole. */
function betweenDimensions(downstream: MultiDefinition, upstream: MultiDefinition): DefaultMapping {
  const dimensions: Record<string, { dimension: string; mapping: SimpleMapping }> = {}
  for (const [name, above] of dimensionsOf(upstream)) {
    const below = Object.hasOwn(downstream.dimensions, name) ? downstream.dimensions[name] : undefined
    if (below === undefined) continue
    const mapping = betweenNamesakes(below, above)
    if (mapping === 'zones')
      return { reason: `dimension ${name} has different time zones downstream and upstream (mapping_zones)` }
    if (mapping !== undefined) dimensions[name] = { dimension: name, mapping }
  }
  if (Object.keys(dimensions).length > 0) return { mapping: { type: 'multi', dimensions } }
  // Every partition would need every other, which is rarely meant and expensive.
  return {
    reason: `${dimensionNames(downstream).join(', ')} and ${dimensionNames(upstream).join(', ')} have no dimension in common`,
  }
}

function betweenNamesakes(below: DimensionDefinition, above: DimensionDefinition): SimpleMapping | 'zones' | undefined {
  if (sameDefinition(below, above)) return { type: 'identity' }
  if (isTime(below) && isTime(above)) return sameZone(below.timezone, above.timezone) ? overlap : 'zones'
  // Lists may differ by a key or two; an equal name means that they hold the same things.
  return below.type === above.type ? { type: 'identity' } : undefined
}

/** The dimension that is defined as the single side is or, failing that, the one that is time as well. */
function byOneDimension(several: MultiDefinition, single: DimensionDefinition): DefaultMapping {
  const dimensions = dimensionsOf(several)
  const same = dimensions.filter(([, definition]) => sameDefinition(definition, single)).map(([name]) => name)
  const [first] = same
  if (same.length > 1) return { reason: `${same.join(' and ')} are both defined like the ${single.type} partitions: say which` }
  if (first !== undefined) return { mapping: { type: 'dimension', dimension: first, mapping: { type: 'identity' } } }
  const times = isTime(single) ? dimensions.filter(([, definition]) => isTime(definition)) : []
  const [only] = times
  if (only === undefined || times.length > 1)
    return { reason: `none of ${dimensionNames(several).join(', ')} is defined like the ${single.type} partitions` }
  const [name, definition] = only
  return isTime(definition) && isTime(single) && sameZone(definition.timezone, single.timezone)
    ? { mapping: { type: 'dimension', dimension: name, mapping: overlap } }
    : { reason: `dimension ${name} has a different time zone from the ${single.type} partitions (mapping_zones)` }
}
