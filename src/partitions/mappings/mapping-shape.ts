import {
  dimensionNames,
  dimensionOf,
  isTime,
  type PartitionDefinition,
  type Partitioning,
  timeDefinition,
} from '../definition.ts'
import { sameZone } from '../time/same-zone.ts'
import { isLinked, linksOf } from './dimensions.ts'
import type { LinkedMapping, PartitionMapping, SimpleMapping } from './mapping.ts'

export interface MappingProblem {
  readonly code: 'mapping_zones' | 'mapping_kinds' | 'mapping_dimension' | 'mapping_offsets' | 'mapping_keys'
  readonly message: string
  readonly hint: string
}

/** The reasons why a mapping cannot hold between these definitions, whatever their keys are. */
export function shapeProblems(mapping: PartitionMapping, downstream: Partitioning, upstream: Partitioning): MappingProblem[] {
  // An asset without partitions is required whole, whatever the mapping is.
  if (upstream === undefined) return []
  if (isLinked(mapping)) return linkedProblems(mapping, downstream, upstream)
  return simpleProblems(mapping, downstream, upstream)
}

function simpleProblems(mapping: SimpleMapping, downstream: Partitioning, upstream: PartitionDefinition): MappingProblem[] {
  if (mapping.type === 'all' || mapping.type === 'last' || mapping.type === 'specific') return []
  if (downstream === undefined)
    return [
      kinds(
        `An asset without partitions cannot take those of the upstream asset by ${mapping.type}`,
        'Use all, last or specific keys.',
      ),
    ]
  if (mapping.type === 'identity') return identityProblems(downstream, upstream)
  return mapping.type === 'time_window' ? timeProblems(mapping, downstream, upstream) : []
}

function identityProblems(downstream: PartitionDefinition, upstream: PartitionDefinition): MappingProblem[] {
  const [below, above] = [dimensionNames(downstream).join(', '), dimensionNames(upstream).join(', ')]
  if (below !== above)
    return [
      kinds(
        `The same key cannot be in both: downstream has ${below || 'one dimension'}, upstream ${above || 'one dimension'}`,
        'Use dimension or multi to map dimensions to each other.',
      ),
    ]
  if (isTime(downstream) && isTime(upstream) && timeDefinition(downstream).format !== timeDefinition(upstream).format)
    return [
      kinds(
        `The same key cannot be in both: ${downstream.type} and ${upstream.type} windows have different keys`,
        'Use time_window to take the windows that overlap.',
      ),
    ]
  return []
}

function timeProblems(
  { start_offset, end_offset }: Extract<SimpleMapping, { type: 'time_window' }>,
  downstream: PartitionDefinition,
  upstream: PartitionDefinition,
): MappingProblem[] {
  if (!isTime(downstream) || !isTime(upstream)) {
    const offsets = start_offset !== 0 || end_offset !== 0 ? `Offsets (${start_offset}, ${end_offset}) are` : 'time_window is'
    return [
      kinds(
        `${offsets} for windows of time, but downstream has ${downstream.type} and upstream ${upstream.type}`,
        'Use identity, static or all; for several dimensions use dimension or multi.',
      ),
    ]
  }
  const problems: MappingProblem[] = []
  // Overlap could be computed, but a day in Paris is not a day in New York: the author expects one and would get two.
  if (!sameZone(downstream.timezone, upstream.timezone))
    problems.push({
      code: 'mapping_zones',
      message: `Windows in ${downstream.timezone} cannot be made of windows in ${upstream.timezone}: they begin at different times`,
      hint: 'Give both assets the same time zone, or use identity to pair windows of the same key.',
    })
  if (start_offset > end_offset)
    problems.push({
      code: 'mapping_offsets',
      message: `start_offset ${start_offset} is after end_offset ${end_offset}: there is no window between them`,
      hint: 'start_offset must not exceed end_offset: -1 and -1 is the window before.',
    })
  return problems
}

function linkedProblems(mapping: LinkedMapping, downstream: Partitioning, upstream: PartitionDefinition): MappingProblem[] {
  const several = [downstream, upstream].filter((it) => it?.type === 'multi').length
  if (mapping.type === 'multi' && several !== 2)
    return [kinds('multi is for several dimensions on both sides', 'Use dimension, or all.')]
  if (downstream === undefined || (mapping.type === 'dimension' && several !== 1))
    return [kinds('dimension is for several dimensions on one side and one on the other', 'Use multi, identity or all.')]
  return linksOf(mapping, downstream, upstream).flatMap((link) => {
    const [below, above] = [dimensionOf(downstream, link.downstream), dimensionOf(upstream, link.upstream)]
    if (above === undefined) return [unknownDimension(link.upstream, 'upstream', upstream)]
    if (below === undefined) return [unknownDimension(link.downstream, 'downstream', downstream)]
    return inDimension(link.upstream, simpleProblems(link.mapping, below, above))
  })
}

export const inDimension = (dimension: string, problems: readonly MappingProblem[]): MappingProblem[] =>
  problems.map((problem) => ({ ...problem, message: `Dimension ${dimension}: ${problem.message}` }))

const kinds = (message: string, hint: string): MappingProblem => ({ code: 'mapping_kinds', message, hint })

const unknownDimension = (name: string, side: string, definition: PartitionDefinition): MappingProblem => ({
  code: 'mapping_dimension',
  message: `Unknown dimension ${name} ${side}`,
  hint: `The dimensions ${side} are ${dimensionNames(definition).join(', ')}.`,
})
