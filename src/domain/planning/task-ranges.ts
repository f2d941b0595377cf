import { isTime } from '../../partitions/definition.ts'
import { rangeKey, readKey } from '../../partitions/key.ts'
import { type PartitionSet, positionIn } from '../../partitions/partition-set.ts'

/** The partitions that one task makes: neighbours, along the dimension of time if there are several dimensions. */
export interface TaskRange {
  /** As people ask for them, and as a rerun does: `2025-01-01..2025-01-31`, or `date=2025-01-01..2025-01-31,region=eu`. */
  readonly key: string
  readonly keys: readonly string[]
  /** The values of the dimensions that are the same in all of them; null when there is one dimension. */
  readonly values: Readonly<Record<string, string>> | null
}

/** The end of a task records a status of each of its partitions, in one fold. */
export const MAX_PARTITIONS_PER_TASK = 10_000
/** A task and its keys are part of one event, which may have 1 MiB. */
const MAX_KEY_BYTES_PER_TASK = 400_000

/** Cuts the partitions that a run makes into ranges of neighbours, none of them longer than `atMost`. */
export function taskRanges(set: PartitionSet, chosen: Iterable<string>, atMost: number): TaskRange[] {
  const along = set.dimensions.findIndex((dimension) => isTime(dimension.set.definition))
  // A step along that dimension is this many positions of the whole set: the last dimension varies fastest.
  const step = along < 0 ? 1 : set.dimensions.slice(along + 1).reduce((all, { set: { count } }) => all * count, 1)
  const length = along < 0 ? set.count : (set.dimensions[along]?.set.count ?? 1)
  const places = [...chosen].map((key) => {
    const position = positionIn(set, key)
    const place = Math.floor(position / step) % length
    return { key, place, group: position - place * step }
  })
  places.sort((a, b) => a.group - b.group || a.place - b.place)
  const ranges: string[][] = []
  let [group, next, bytes] = [-1, -1, 0]
  for (const each of places) {
    bytes += Buffer.byteLength(each.key) + 3
    const range = ranges.at(-1)
    const fits =
      range !== undefined && range.length < Math.min(atMost, MAX_PARTITIONS_PER_TASK) && bytes <= MAX_KEY_BYTES_PER_TASK
    if (fits && each.group === group && each.place === next) range.push(each.key)
    else {
      ranges.push([each.key])
      bytes = Buffer.byteLength(each.key) + 3
    }
    group = each.group
    next = each.place + 1
  }
  return ranges.map((keys) => rangeOf(keys, set.dimensions[along]?.name))
}

function rangeOf(keys: readonly string[], dimension: string | undefined): TaskRange {
  const [first = '', last = first] = [keys[0], keys.at(-1)]
  const key = rangeKey(first, last, dimension !== undefined)
  if (dimension === undefined) return { key, keys, values: null }
  const { [dimension]: _, ...values } = readKey(first)
  return { key, keys, values }
}
