import { z } from 'zod'
import { ServoError } from '../../lib/error.ts'
import { noKeys } from '../key-list.ts'
import { allOf, type KeyRange } from '../key-range.ts'
import { positionIn } from '../partition-set.ts'
import { all, last } from './all.ts'
import { isLinked } from './dimensions.ts'
import { identity } from './identity.ts'
import type { Kind, MappedSets, UpstreamRanges } from './kind.ts'
import { linkedDownstream, linkedUpstream } from './linked.ts'
import { shapeProblems } from './mapping-shape.ts'
import { specific } from './specific.ts'
import { staticMap } from './static.ts'
import { timeWindow } from './time-window.ts'

const key = z.string().min(1)
const offset = z.number().int().min(-10_000).max(10_000).default(0)

const simple = [
  /** The partition of the same key. */
  z.strictObject({ type: z.literal('identity') }),
  /**
   * The upstream windows that overlap the downstream one. Offsets shift its start and end by a number of downstream windows:
   * -1 and -1 is the window before, which is how an asset depends on its own past.
   */
  z.strictObject({ type: z.literal('time_window'), start_offset: offset, end_offset: offset }),
  /** Every upstream partition that exists. */
  z.strictObject({ type: z.literal('all') }),
  /** The last upstream partition that exists. */
  z.strictObject({ type: z.literal('last') }),
  /** Upstream key → the downstream key or keys it is for. */
  z.strictObject({ type: z.literal('static'), keys: z.record(key, z.union([key, z.array(key)])) }),
  /** These upstream partitions, whatever the downstream one. */
  z.strictObject({ type: z.literal('specific'), keys: z.array(key).min(1) }),
] as const
const simpleMapping = z.discriminatedUnion('type', simple)

/** The rule by which a downstream partition is made from upstream partitions, as it is recorded. */
export const partitionMapping = z.discriminatedUnion('type', [
  ...simple,
  /**
   * One side has several dimensions and the other is one of them; the others are taken whole. Without a mapping, windows of
   * time overlap and other keys are the same.
   */
  z.strictObject({ type: z.literal('dimension'), dimension: key, mapping: simpleMapping.nullish() }),
  /** Upstream dimension → the downstream dimension it follows, and how. Dimensions without an entry are taken whole. */
  z.strictObject({
    type: z.literal('multi'),
    dimensions: z.record(key, z.strictObject({ dimension: key, mapping: simpleMapping.nullish() })),
  }),
])

export type SimpleMapping = z.infer<typeof simpleMapping>
export type PartitionMapping = z.infer<typeof partitionMapping>
/** A mapping for each dimension. */
export type LinkedMapping = Exclude<PartitionMapping, SimpleMapping>

/** The upstream of a downstream partition: ranges of partitions that exist, and the keys of missing ones. */
export function upstreamOf(mapping: PartitionMapping, sets: MappedSets, downstreamKey: string): UpstreamRanges {
  return upstreamAt(mapping, sets, positionIn(sets.downstream, downstreamKey))
}

/** The same by position. */
export function upstreamAt(mapping: PartitionMapping, sets: MappedSets, position: number): UpstreamRanges {
  refuseUnfit(mapping, sets)
  // An asset without partitions is required whole.
  if (sets.upstream.definition === undefined) return { ranges: [allOf(sets.upstream)], missing: noKeys }
  if (isLinked(mapping)) return withoutEmptyRanges(linkedUpstream(mapping, sets, position, simpleUpstream))
  return withoutEmptyRanges(simpleUpstream(mapping, sets, position))
}

/** The existing downstream partitions that are made from an upstream partition: the inverse of `upstreamOf`. */
export function downstreamOf(mapping: PartitionMapping, sets: MappedSets, upstreamKey: string): readonly KeyRange[] {
  const position = positionIn(sets.upstream, upstreamKey)
  refuseUnfit(mapping, sets)
  if (sets.upstream.definition === undefined) return nonEmpty([allOf(sets.downstream)])
  if (isLinked(mapping)) return nonEmpty(linkedDownstream(mapping, sets, position, simpleDownstream))
  return nonEmpty(simpleDownstream(mapping, sets, position))
}

const kinds: { [Type in SimpleMapping['type']]: Kind<Extract<SimpleMapping, { type: Type }>> } = {
  identity,
  time_window: timeWindow,
  all,
  last,
  static: staticMap,
  specific,
}
const kindOf = (mapping: SimpleMapping): Kind<SimpleMapping> => kinds[mapping.type]
const simpleUpstream = (mapping: SimpleMapping, sets: MappedSets, position: number): UpstreamRanges =>
  kindOf(mapping).upstream(mapping, sets, position)
const simpleDownstream = (mapping: SimpleMapping, sets: MappedSets, position: number): readonly KeyRange[] =>
  kindOf(mapping).downstream(mapping, sets, position)

const nonEmpty = (ranges: readonly KeyRange[]): readonly KeyRange[] => ranges.filter(({ count }) => count > 0)
const withoutEmptyRanges = ({ ranges, missing }: UpstreamRanges): UpstreamRanges => ({ ranges: nonEmpty(ranges), missing })

/** The definitions that a mapping was last found to fit: a plan maps every partition with the same definitions. */
const fitting = new WeakMap<PartitionMapping, readonly [downstream: unknown, upstream: unknown]>()

function refuseUnfit(mapping: PartitionMapping, { downstream, upstream }: MappedSets): void {
  const known = fitting.get(mapping)
  if (known !== undefined && known[0] === downstream.definition && known[1] === upstream.definition) return
  const [problem] = shapeProblems(mapping, downstream.definition, upstream.definition)
  if (problem !== undefined) throw new ServoError('invalid', problem.code, problem.message, { hint: problem.hint })
  fitting.set(mapping, [downstream.definition, upstream.definition])
}
