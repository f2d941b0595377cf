import { MINUTE_MS } from '../../lib/time.ts'
import { dimensionNames, isTime, type PartitionDefinition, type TimePartitions } from '../definition.ts'
import type { PartitionSet } from '../partition-set.ts'
import { isLinked, linksOf } from './dimensions.ts'
import type { MappedSets } from './kind.ts'
import type { PartitionMapping, SimpleMapping } from './mapping.ts'
import { mostUpstream } from './static.ts'

/**
 * True if code gets a collection of upstream partitions, not a single one. The mapping decides, and not how many there happen to
 * be: the first month of an asset, which may have one day only, must not look different from the second. The compiler decides
 * the same by the types: see input-value.ts of the SDK.
 */
export function takesMany(mapping: PartitionMapping, { downstream, upstream }: MappedSets): boolean {
  if (upstream.definition === undefined) return false
  if (!isLinked(mapping)) return simpleTakesMany(mapping, downstream, upstream)
  if (downstream.definition === undefined) return true
  const links = linksOf(mapping, downstream.definition, upstream.definition)
  const linked = new Set(links.map((link) => link.upstream))
  if (dimensionNames(upstream.definition).some((name) => !linked.has(name))) return true
  return links.some((link) => {
    const [below, above] = [partOf(downstream, link.downstream), partOf(upstream, link.upstream)]
    return simpleTakesMany(link.mapping, below, above)
  })
}

/** True if all partitions are made from the same ones, so that one look-up serves all. */
export const takesSame = ({ type }: PartitionMapping): boolean => type === 'all' || type === 'last' || type === 'specific'

function simpleTakesMany(mapping: SimpleMapping, downstream: PartitionSet, upstream: PartitionSet): boolean {
  if (mapping.type === 'identity' || mapping.type === 'last') return false
  if (mapping.type === 'specific') return mapping.keys.length > 1
  if (mapping.type === 'static') return mostUpstream(mapping.keys) > 1
  if (mapping.type !== 'time_window') return true
  if (mapping.start_offset !== mapping.end_offset) return true
  const [below, above] = [downstream.definition, upstream.definition]
  if (!isTime(below) || !isTime(above) || unitOf(below) === unitOf(above)) return false
  // A week may begin in one month and end in another.
  return minutesOf(above, upstream) < minutesOf(below, downstream) || below.type === 'weekly'
}

/** Windows of one unit belong together one by one, however long each happens to be. */
const unitOf = ({ type, every, cron }: TimePartitions): string => [type, every ?? 1, cron].join()

const DAY = 1_440
const minutes: Partial<Record<PartitionDefinition['type'], number>> = {
  hourly: 60,
  daily: DAY,
  weekly: 7 * DAY,
  monthly: 30 * DAY,
  quarterly: 91 * DAY,
  yearly: 365 * DAY,
}

/** The length of windows: of their unit or, for a cron expression, of the first window. */
function minutesOf({ type, every }: TimePartitions, { axis }: PartitionSet): number {
  if (type === 'minutely') return every ?? 1
  const first = axis?.at(0)
  return minutes[type] ?? (first === undefined ? 0 : (first.endMs - first.startMs) / MINUTE_MS)
}

/** A set with one dimension is that dimension, by whatever name. */
function partOf(set: PartitionSet, name: string): PartitionSet {
  return set.dimensions.find((dimension) => dimension.name === name)?.set ?? set
}
