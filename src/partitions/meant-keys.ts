import { countWhile } from '../lib/collections/binary-search.ts'
import { shellWord } from '../lib/process/shell-word.ts'
import type { PartitionSet } from './partition-set.ts'

const NEWEST = /^(latest|last|newest|today|yesterday)$/i

/** How to write what somebody probably meant by a key that does not exist; undefined if nobody can tell. */
export function meantBy(set: PartitionSet, key: string): string | undefined {
  const several = key.split(',').map((each) => each.trim())
  if (several.length > 1 && several.every((each) => set.has(each)))
    return `Repeat the option: ${several.map((each) => `--partition ${shellWord(each)}`).join(' ')}`
  if (set.axis === undefined || set.count === 0) return undefined
  if (NEWEST.test(key)) return 'Write latest for the last window that has closed.'
  return windowsThatBeginWith(set, key.replace(/\*$/, ''))
}

/** The days of `2026-09` or `2026-09-*`, as the range that they are. */
function windowsThatBeginWith(set: PartitionSet, beginning: string): string | undefined {
  if (beginning === '') return undefined
  const first = countWhile(set.count, (position) => set.at(position) < beginning)
  const after = countWhile(set.count, (position) => set.at(position) < beginning || set.at(position).startsWith(beginning))
  if (after <= first) return undefined
  const [from, to] = [set.at(first), set.at(after - 1)]
  return from === to ? `Write ${from}.` : `Write the range ${from}..${to}.`
}
