import { itemAt } from '../../../lib/collections/item-at.ts'
import { isServoError, ServoError } from '../../../lib/error.ts'
import { isTime } from '../../../partitions/definition.ts'
import { type KeyRange, keyRange } from '../../../partitions/key-range.ts'
import { rangesOf } from '../../../partitions/key-selection.ts'
import type { PartitionSet } from '../../../partitions/partition-set.ts'
import { points, type Spans, span, spans, union } from '../../../partitions/spans.ts'
import type { GraphPartitions } from '../../assets/graph-partitions.ts'
import { positionsOf, staleLink } from '../../partitions/stale-links.ts'
import { parsePartitions } from '../../planning/parse-partitions.ts'
import type { PartitionSelector } from '../partition-selector.ts'

/** By asset, in graph order: the positions that are meant. */
export type ChosenPositions = ReadonlyMap<string, Spans>

/** What an asset of one dimension, which has no name, is called in a filter. */
const ONLY_DIMENSION = 'partition'
/** Positions that are looked at one by one to find those of an asset that is partitioned differently. */
const MAX_MAPPED = 500_000

const everything = (set: PartitionSet): Spans => span(0, set.count - 1)

/**
 * The positions of each asset that a selector means, before the state of any partition is looked at. An asset that has the keys that
 * are named takes those; an asset that is partitioned differently takes the related ones, as in a run: the month of a day, the days of a month.
 * Assets without partitions have one position. Ranges are spans from the first to the last, so their length does not matter.
 */
export function askedPositions(
  assets: readonly string[],
  selector: PartitionSelector,
  partitions: GraphPartitions,
): ChosenPositions {
  const partitioned = assets.filter((key) => partitions.of(key).definition !== undefined)
  const read = readerOf(selector)
  const found = new Map<string, Spans>()
  if (read === undefined) for (const key of partitioned) found.set(key, everything(partitions.of(key)))
  else {
    if (partitioned.length === 0) throw noPartitions(assets)
    readEach(partitioned, read, partitions, found)
    // Upstream of the chosen assets comes before downstream.
    for (const key of [...partitioned].reverse()) if (!found.has(key)) take(found, key, neededBelow(key, partitions, found))
    for (const key of partitioned) if (!found.has(key)) take(found, key, madeFromAbove(key, partitions, found))
    const unrelated = partitioned.find((key) => !found.has(key))
    if (unrelated !== undefined) throw notRelated(unrelated)
  }
  return new Map(assets.map((key) => [key, found.get(key) ?? everything(partitions.of(key))]))
}

type Read = (set: PartitionSet) => Spans

/** How the keys of a selector are read; undefined if it means all of them. */
function readerOf(selector: PartitionSelector): Read | undefined {
  switch (selector.type) {
    case 'all':
    case 'retry_failed':
      return undefined
    case 'explicit':
      return (set) => union(selector.partition_keys.map((key) => positionsIn(set, parsePartitions(set, key))))
    case 'filter':
      return (set) => filtered(set, selector.filters)
    default: {
      const { start, end } = selector
      if (start == null && end == null) return undefined
      return (set) => between(set, start ?? undefined, end ?? undefined)
    }
  }
}

const positionsIn = (set: PartitionSet, ranges: readonly KeyRange[]): Spans =>
  spans(ranges.flatMap((range) => [...positionsOf(set, range.spans)]))

/** From one key to another. Of several dimensions, that is the one of time; the others are taken whole. */
function between(set: PartitionSet, from: string | undefined, to: string | undefined): Spans {
  const ends = { ...(from !== undefined && { from }), ...(to !== undefined && { to }) }
  if (set.dimensions.length === 0) return positionsIn(set, rangesOf(set, [ends]))
  const [time, another] = set.dimensions.filter((dimension) => isTime(dimension.set.definition))
  if (time !== undefined && another === undefined) return positionsIn(set, rangesOf(set, { [time.name]: [ends] }))
  const names = set.dimensions.map(({ name }) => name)
  throw new ServoError('invalid', 'bad_partition_selection', 'a range needs one dimension of time', {
    hint: `Filter by dimension instead: --filter ${names[0]}=… . The dimensions are ${names.join(', ')}.`,
  })
}

/** Keys that match in every dimension that is named; the others are taken whole. */
function filtered(set: PartitionSet, filters: Readonly<Record<string, string>>): Spans {
  const parts = set.dimensions.length === 0 ? [{ name: ONLY_DIMENSION, set }] : set.dimensions
  const unknown = Object.keys(filters).find((name) => !parts.some((part) => part.name === name))
  if (unknown !== undefined) {
    throw new ServoError('invalid', 'bad_partition_selection', `unknown dimension \`${unknown}\``, {
      hint: `Filter by ${parts.map(({ name }) => name).join(', ')}.`,
    })
  }
  const wanted = parts.map(({ name, set: part }) => matching(part, filters[name] ?? '*'))
  return positionsIn(set, [keyRange(set, wanted)])
}

/** `*` stands for any text, also for none. */
function matching(set: PartitionSet, pattern: string): Spans {
  if (pattern === '*') return everything(set)
  if (!pattern.includes('*')) return positionsIn(set, rangesOf(set, [pattern]))
  const text = pattern.split('*').map((part) => part.replace(/[.+?^${}()|[\]\\]/g, '\\$&'))
  const expression = new RegExp(`^${text.join('.*')}$`, 's')
  const found: number[] = []
  for (let position = 0; position < set.count; position++) if (expression.test(set.at(position))) found.push(position)
  return points(found)
}

function readEach(assets: readonly string[], read: Read, partitions: GraphPartitions, found: Map<string, Spans>): void {
  /** Many assets share a few definitions, so each is read once. */
  const answers = new Map<PartitionSet, Spans | ServoError>()
  let refused: { readonly key: string; readonly error: ServoError } | undefined
  for (const key of assets) {
    const set = partitions.of(key)
    let answer = answers.get(set)
    if (answer === undefined) {
      answer = readOrRefuse(set, read)
      answers.set(set, answer)
    }
    if (isServoError(answer)) refused ??= { key, error: answer }
    else found.set(key, answer)
  }
  if (found.size > 0 || refused === undefined) return
  const { kind, code, message, hint, facts } = refused.error
  throw new ServoError(kind, code, `${refused.key}: ${message}`, { facts, ...(hint !== undefined && { hint }) })
}

function readOrRefuse(set: PartitionSet, read: Read): Spans | ServoError {
  try {
    return read(set)
  } catch (error) {
    if (isServoError(error)) return error
    throw error
  }
}

function take(found: Map<string, Spans>, key: string, positions: Spans): void {
  if (positions.count > 0) found.set(key, positions)
}

function neededBelow(key: string, partitions: GraphPartitions, found: ReadonlyMap<string, Spans>): Spans {
  const needed: Spans[] = []
  for (const [below, positions] of found) {
    if (below === key) continue
    for (const link of partitions.links(below))
      if (link.upstream === key) needed.push(upstreamPositions(below, link, positions, partitions))
  }
  return union(needed)
}

/** The positions of an upstream asset that some of a downstream one are made from. */
export function upstreamPositions(
  key: string,
  link: ReturnType<GraphPartitions['links']>[number],
  positions: Spans,
  partitions: GraphPartitions,
): Spans {
  const { isSame, isFixed, needed } = staleLink(key, link, partitions)
  if (isSame) return positions
  if (positions.count === 0) return spans([])
  if (isFixed) return spans(needed(positions.at(0)).spans)
  if (positions.count > MAX_MAPPED) throw tooManyToMap(key, positions.count)
  return spans(
    positions.list.flatMap(({ from, to }) => Array.from({ length: to - from + 1 }, (_, i) => needed(from + i).spans).flat()),
  )
}

function madeFromAbove(key: string, partitions: GraphPartitions, found: ReadonlyMap<string, Spans>): Spans {
  const affected: Spans[] = []
  const own = partitions.of(key)
  for (const link of partitions.links(key)) {
    const above = found.get(link.upstream)
    if (link.upstream === key || above === undefined) continue
    const theirs = partitions.of(link.upstream)
    if (above.count > MAX_MAPPED) throw tooManyToMap(link.upstream, above.count)
    for (const { from, to } of above.list)
      for (let position = from; position <= to; position++)
        affected.push(positionsIn(own, partitions.downstreamOf(key, link, theirs.at(position))))
  }
  return union(affected)
}

const noPartitions = (assets: readonly string[]): ServoError =>
  new ServoError(
    'invalid',
    'no_partitions',
    assets.length === 1 ? `${itemAt(assets, 0)} has no partitions` : `none of the ${assets.length} assets has partitions`,
    { hint: 'Run it as a whole: servo run.' },
  )

const notRelated = (key: string): ServoError =>
  new ServoError(
    'invalid',
    'no_such_partition',
    `${key} is partitioned differently, and nothing in the backfill relates its partitions to these`,
    {
      hint: `Create a backfill of ${key} by itself.`,
    },
  )

const tooManyToMap = (key: string, count: number): ServoError =>
  new ServoError(
    'invalid',
    'too_many_partitions',
    `${count} partitions of ${key} are too many to find the related ones of an asset that is partitioned differently; the limit is ${MAX_MAPPED}`,
    { hint: 'Create a backfill for each asset, or for fewer partitions.' },
  )
