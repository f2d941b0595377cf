import { lastAtMost } from '../lib/collections/binary-search.ts'
import { itemAt } from '../lib/collections/item-at.ts'
import { writeKey } from './key.ts'

/** Keys that can be counted and picked without being listed. */
export interface KeyList {
  readonly count: number
  at(index: number): string
}

export const noKeys: KeyList = listOf([])

export function listOf(keys: readonly string[]): KeyList {
  return { count: keys.length, at: (index) => itemAt(keys, index) }
}

/** One list after the other, without the empty ones. Ranges in it must not overlap, or a key is counted twice. */
export function concat(lists: readonly KeyList[]): KeyList {
  const filled = lists.filter(({ count }) => count > 0)
  const [first, second] = filled
  if (first !== undefined && second === undefined) return first
  const before: number[] = []
  let count = 0
  for (const list of filled) {
    before.push(count)
    count += list.count
  }
  return {
    count,
    at(index) {
      const list = lastAtMost(before, within(index, count))
      return itemAt(filled, list).at(index - itemAt(before, list))
    },
  }
}

/** The keys of one dimension. */
export interface NamedKeys {
  readonly name: string
  readonly keys: KeyList
}

/** Every combination of the values of several dimensions; the last varies fastest. */
export function product(dimensions: readonly NamedKeys[]): KeyList {
  const counts = dimensions.map(({ keys }) => keys.count)
  return {
    count: counts.reduce((all, count) => all * count, 1),
    at(index) {
      const digits = digitsOf(index, counts)
      return writeKey(Object.fromEntries(dimensions.map(({ name, keys }, i) => [name, keys.at(itemAt(digits, i))])))
    },
  }
}

/** The keys at `from` up to, and without, `to`, as `slice` takes them. */
export function* keysOf(list: KeyList, from = 0, to: number = list.count): IterableIterator<string> {
  for (let index = Math.max(0, from); index < Math.min(to, list.count); index++) yield list.at(index)
}

/** A number in mixed radix, the first digit weighing most. */
export function digitsOf(number: number, radices: readonly number[]): number[] {
  const digits: number[] = []
  let rest = number
  for (let i = radices.length - 1; i >= 0; i--) {
    const radix = itemAt(radices, i)
    digits[i] = rest % radix
    rest = Math.floor(rest / radix)
  }
  if (!(number >= 0 && rest === 0)) throw new RangeError(`there is no position ${number} in ${radices.join(' × ')}`)
  return digits
}

export function within(index: number, count: number): number {
  if (index >= 0 && index < count) return index
  throw new RangeError(`there is no position ${index} among ${count}`)
}
