import { isServoError, ServoError } from '../../lib/error.ts'
import { shellWord } from '../../lib/process/shell-word.ts'
import { keysOf } from '../../partitions/key-list.ts'
import type { KeyRange } from '../../partitions/key-range.ts'
import { takesSame } from '../../partitions/mappings/takes-many.ts'
import { type PartitionSet, saidOf } from '../../partitions/partition-set.ts'
import type { GraphPartitions } from '../assets/graph-partitions.ts'
import { LATEST, parsePartitions, timesOf } from './parse-partitions.ts'

/** An asset without partitions has one part, whose key is the empty text. */
type Keys = ReadonlySet<string>

const asAWhole: Keys = new Set([''])

/** More than this is a backfill, which plans as it goes. */
const MAX_PARTITIONS_PER_ASSET = 1_000_000

/**
 * The partitions that a run makes of each asset, when the request names partitions once for all assets. An asset that has all of
 * them makes those. An asset that is partitioned differently makes the related ones: the days of a month, the month of a day.
 * `latest` says nothing about an asset without windows, so that asset makes none, unless another asset relates to it.
 */
export function partitionsOfRun(
  assets: readonly string[],
  asked: readonly string[] | null,
  partitions: GraphPartitions,
): ReadonlyMap<string, Keys> {
  const chosen = new Map<string, Keys>()
  const partitioned = assets.filter((key) => partitions.of(key).definition !== undefined)
  for (const key of assets) if (partitions.of(key).definition === undefined) chosen.set(key, asAWhole)
  const [first] = partitioned
  if (first === undefined) return chosen
  if (asked === null || asked.length === 0) throw partitionsWanted(first, partitions.of(first))
  const made = new Map<string, Keys>()
  askDirectly(partitioned, asked, partitions, made)
  // Upstream of the chosen assets comes before downstream.
  for (const key of [...partitioned].reverse())
    if (!made.has(key)) take(made, key, neededBelow(key, partitioned, partitions, made))
  for (const key of partitioned) if (!made.has(key)) take(made, key, madeFromAbove(key, partitions, made))
  for (const key of partitioned) {
    const keys = made.get(key) ?? (isLeftOut(partitions.of(key), asked) ? new Set() : undefined)
    if (keys === undefined) throw unrelatedPartitions(key, asked)
    chosen.set(key, keys)
  }
  return chosen
}

/** Adds every key of some ranges. */
export function addAll(keys: Set<string>, ranges: readonly KeyRange[]): Set<string> {
  for (const range of ranges) {
    if (keys.size + range.count > MAX_PARTITIONS_PER_ASSET) throw tooMany(keys.size + range.count)
    for (const key of keysOf(range)) keys.add(key)
  }
  return keys
}

function askDirectly(
  assets: readonly string[],
  asked: readonly string[],
  partitions: GraphPartitions,
  made: Map<string, Keys>,
): void {
  /** Many assets share a few definitions, so each definition is asked once. */
  const answers = new Map<PartitionSet, Keys | ServoError>()
  let refused: { readonly key: string; readonly error: ServoError } | undefined
  for (const key of assets) {
    const set = partitions.of(key)
    let answer = answers.get(set)
    if (answer === undefined) {
      answer = keysAsked(set, asked)
      answers.set(set, answer)
    }
    if (isServoError(answer)) refused ??= { key, error: answer }
    else made.set(key, answer)
  }
  if (made.size > 0 || refused === undefined) return
  const { message, hint } = refused.error
  throw new ServoError('invalid', 'no_such_partition', saidOf(refused.key, message), hint === undefined ? {} : { hint })
}

function keysAsked(set: PartitionSet, asked: readonly string[]): Keys | ServoError {
  const keys = new Set<string>()
  try {
    for (const entry of asked) addAll(keys, parsePartitions(set, entry))
    return keys
  } catch (error) {
    if (isServoError(error) && error.code !== 'too_many_partitions') return error
    throw error
  }
}

function take(made: Map<string, Keys>, key: string, keys: Set<string>): void {
  if (keys.size > 0) made.set(key, keys)
}

function neededBelow(key: string, assets: readonly string[], partitions: GraphPartitions, made: ReadonlyMap<string, Keys>) {
  const needed = new Set<string>()
  for (const below of assets) {
    const keys = made.get(below)
    if (below === key || keys === undefined) continue
    for (const link of partitions.links(below)) {
      if (link.upstream !== key) continue
      for (const belowKey of keys) {
        addAll(needed, partitions.neededBy(below, link, belowKey))
        if (takesSame(link.mapping)) break
      }
    }
  }
  return needed
}

function madeFromAbove(key: string, partitions: GraphPartitions, made: ReadonlyMap<string, Keys>): Set<string> {
  const affected = new Set<string>()
  for (const link of partitions.links(key)) {
    if (link.upstream === key) continue
    for (const upstreamKey of made.get(link.upstream) ?? []) {
      addAll(affected, partitions.downstreamOf(key, link, upstreamKey))
      if (link.mapping.type === 'all') break
    }
  }
  return affected
}

export function partitionsWanted(key: string, set: PartitionSet): ServoError {
  const there = set.count === 0 ? 'none exists yet' : `${set.at(0)} to ${set.at(set.count - 1)}`
  const hint =
    set.count === 0
      ? 'Wait until the first window closes, or add keys.'
      : `Name them: ${waysToName(set).join(', ')}, or a range such as ${flag(rangeOf(set))}`
  return new ServoError('invalid', 'partitions_wanted', `${key} has partitions (${there}), but the request names none`, {
    hint,
  })
}

const flag = (partition: string): string => `--partition ${shellWord(partition)}`

/** The last partition, and `latest` where it means one. */
function waysToName(set: PartitionSet): string[] {
  return [flag(set.at(set.count - 1)), ...(timesOf(set).length === 1 ? [flag(LATEST)] : [])]
}

/** The last few keys as a user would write them; of several dimensions one is enough. */
function rangeOf(set: PartitionSet): string {
  const [dimension] = set.dimensions
  if (dimension !== undefined) return `${dimension.name}=${rangeOf(dimension.set)}`
  return `${set.at(Math.max(0, set.count - 3))}..${set.at(set.count - 1)}`
}

function isLeftOut(set: PartitionSet, asked: readonly string[]): boolean {
  return timesOf(set).length === 0 && asked.every((entry) => entry === LATEST)
}

function unrelatedPartitions(key: string, asked: readonly string[]): ServoError {
  const shown = asked.slice(0, 3).join(', ') + (asked.length > 3 ? ` and ${asked.length - 3} more` : '')
  return new ServoError('invalid', 'partitions_unrelated', `no partition of ${key} maps to ${shown}`, {
    hint: `Run ${key} by itself, with partitions of its own.`,
  })
}

const tooMany = (count: number): ServoError =>
  new ServoError(
    'invalid',
    'too_many_partitions',
    `the run would materialize ${count} partitions of one asset; the limit is ${MAX_PARTITIONS_PER_ASSET}`,
    {
      hint: 'Request fewer at a time.',
    },
  )
