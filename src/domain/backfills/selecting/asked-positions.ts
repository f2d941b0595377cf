import { itemAt } from '../../../lib/collections/item-at.ts'
import { isServoError, ServoError } from '../../../lib/error.ts'
import { wildcard } from '../../../lib/text/wildcard.ts'
import { isTime } from '../../../partitions/definition.ts'
import { type KeyRange, keyRange, spansInSet } from '../../../partitions/key-range.ts'
import { rangesOf } from '../../../partitions/key-selection.ts'
import type { PartitionSet } from '../../../partitions/partition-set.ts'
import { gathered, Neighbours, type Span, type Spans, span, spans, union } from '../../../partitions/spans.ts'
import type { GraphPartitions } from '../../assets/graph-partitions.ts'
import { staleLink } from '../../partitions/stale-links.ts'
import { parsePartitions } from '../../planning/parse-partitions.ts'
import type { PartitionSelector } from '../partition-selector.ts'
import { isTooMany, MAX_SPANS, refuseMapping, refuseMatching, refuseScattered, tooManyToMap } from './too-many.ts'

/** By asset, in graph order: the positions that are meant. */
export type ChosenPositions = ReadonlyMap<string, Spans>

/** What an asset of one dimension, which has no name, is called in a filter. */
const ONLY_DIMENSION = 'partition'

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
    if (unrelated !== undefined) throw notRelated(unrelated, partitions, partitioned)
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
      return (set) => positionsIn(selector.partition_keys.flatMap((key) => parsePartitions(set, key)))
    case 'filter':
      return (set) => filtered(set, selector.filters)
    default: {
      const { start, end } = selector
      if (start == null && end == null) return undefined
      return (set) => between(set, start ?? undefined, end ?? undefined)
    }
  }
}

/** They are counted before any is listed. */
function positionsIn(ranges: readonly KeyRange[]): Spans {
  let listed = 0
  for (const range of ranges) listed = refuseScattered(range, listed)
  return spans(ranges.flatMap((range) => [...spansInSet(range)]))
}

/** From one key to another. Of several dimensions, that is the one of time; the others are taken whole. */
function between(set: PartitionSet, from: string | undefined, to: string | undefined): Spans {
  const ends = { ...(from !== undefined && { from }), ...(to !== undefined && { to }) }
  if (set.dimensions.length === 0) return positionsIn(rangesOf(set, [ends]))
  const [time, another] = set.dimensions.filter((dimension) => isTime(dimension.set.definition))
  if (time !== undefined && another === undefined) return positionsIn(rangesOf(set, { [time.name]: [ends] }))
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
  return positionsIn([keyRange(set, wanted)])
}

/** `*` stands for any text, also for none. */
function matching(set: PartitionSet, pattern: string): Spans {
  if (pattern === '*') return everything(set)
  if (!pattern.includes('*')) return positionsIn(rangesOf(set, [pattern]))
  refuseMatching(set.count, pattern)
  const isMeant = wildcard(pattern)
  const found = new Neighbours()
  let position = 0
  for (const key of set.keys()) {
    if (isMeant(key)) found.add(position)
    position += 1
  }
  return spans(found.list)
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
    if (isServoError(error) && !isTooMany(error)) return error
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
      if (link.upstream === key) needed.push(upstreamPositions(below, link, positions, partitions, MAX_SPANS))
  }
  return union(needed)
}

/** The positions of an upstream asset that some of a downstream one are made from. Those of a chunk are found however many they are. */
export function upstreamPositions(
  key: string,
  link: ReturnType<GraphPartitions['links']>[number],
  positions: Spans,
  partitions: GraphPartitions,
  most = Number.POSITIVE_INFINITY,
): Spans {
  const { isSame, isFixed, needed } = staleLink(key, link, partitions)
  if (isSame) return positions
  if (positions.count === 0) return spans([])
  if (isFixed) return spans(needed(positions.at(0)).spans)
  refuseMapping(key, positions.count)
  const all = gathered(
    mapped(positions, (position) => needed(position).spans),
    most,
  )
  if (all === undefined) throw tooManyToMap(key, positions.count)
  return all
}

function* mapped(positions: Spans, to: (position: number) => readonly Span[]): Iterable<readonly Span[]> {
  for (const { from, to: last } of positions.list) for (let position = from; position <= last; position++) yield to(position)
}

function madeFromAbove(key: string, partitions: GraphPartitions, found: ReadonlyMap<string, Spans>): Spans {
  const affected: Spans[] = []
  for (const link of partitions.links(key)) {
    const { upstream } = link
    const above = found.get(upstream)
    if (upstream === key || above === undefined) continue
    const theirs = partitions.of(upstream)
    refuseMapping(upstream, above.count)
    const madeFrom = (position: number): Span[] =>
      partitions.downstreamOf(key, link, theirs.at(position)).flatMap((range) => [...spansInSet(range)])
    const all = gathered(mapped(above, madeFrom), MAX_SPANS)
    if (all === undefined) throw tooManyToMap(upstream, above.count)
    affected.push(all)
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

function notRelated(key: string, partitions: GraphPartitions, chosen: readonly string[]): ServoError {
  const between = partitions.links(key).find(({ upstream }) => !chosen.includes(upstream))?.upstream
  const byItself = `reate a backfill of ${key} by itself.`
  return new ServoError(
    'invalid',
    'no_such_partition',
    `${key} is partitioned differently, and nothing in the backfill relates its partitions to these`,
    { hint: between === undefined ? `C${byItself}` : `Select ${between} too, or c${byItself}` },
  )
}
