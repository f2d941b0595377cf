import type { AskedRun, EvaluationReport } from '../../contract/evaluation.ts'
import { isObject } from '../../lib/is-object.ts'
import type { RunRequest } from '../declare/trigger.ts'
import { invalid, show } from '../invalid.ts'
import { KeyChanges, type KeysOfSet } from '../partitions/key-changes.ts'

type Requests = Extract<EvaluationReport, { outcome: 'requests' }>

/** What code returned, as it is reported: the runs, and the keys that come and go with them. */
export function requestsOf(owner: string, returned: unknown, members: readonly string[]): Omit<Requests, 'cursor'> {
  const keys = new KeyChanges()
  const { runs, add, remove } = partsOf(owner, returned, members)
  // The last change of a key counts, and a key that both comes and goes comes.
  for (const { partitions, keys: gone } of setsOf(owner, 'remove', remove)) keys.of(partitions).remove(gone)
  for (const { partitions, keys: added } of setsOf(owner, 'add', add)) keys.of(partitions).add(added)
  return { outcome: 'requests', runs: runs.map((one) => askedRun(owner, one)), ...keys.reported() }
}

interface Parts {
  readonly runs: readonly unknown[]
  readonly add?: unknown
  readonly remove?: unknown
}

function partsOf(owner: string, returned: unknown, members: readonly string[]): Parts {
  if (returned === undefined || returned === null) return { runs: [] }
  if (isRunRequest(returned)) return { runs: [returned] }
  if (Array.isArray(returned)) return { runs: returned }
  if (!isObject(returned) || !Array.isArray(returned['runs'])) throw notRequests(owner, returned)
  const unknown = Object.keys(returned).find((name) => !members.includes(name))
  if (unknown !== undefined)
    throw invalid('bad_result', `${owner} returned an unknown field, \`${unknown}\``, `Return ${members.join(', ')}.`)
  const { runs, add, remove } = returned
  return { runs, add, remove }
}

const isRunRequest = (value: unknown): value is RunRequest => isObject(value) && typeof value['assetKey'] === 'string'

function askedRun(owner: string, request: unknown): AskedRun {
  if (!isRunRequest(request)) throw notRequests(owner, request)
  const { assetKey, partition, runKey, labels, priority } = request
  return {
    asset_selection: [assetKey],
    ...(partition !== undefined && { partition_selection: [partition.key] }),
    ...(runKey !== undefined && { key: runKey }),
    ...(labels !== undefined && { labels }),
    ...(priority !== undefined && { priority }),
  }
}

function setsOf(owner: string, name: 'add' | 'remove', given: unknown): readonly KeysOfSet[] {
  const sets: readonly unknown[] = given === undefined ? [] : Array.isArray(given) ? given : [given]
  return sets.map((set) => {
    if (isKeysOfSet(set)) return set
    const hint = `Return { runs: [], ${name}: { partitions: customers, keys: ['acme'] } }.`
    throw invalid('bad_result', `${owner} returned ${name}: ${shown(given)}`, hint)
  })
}

/** What its members are is checked when they are taken. */
const isKeysOfSet = (set: unknown): set is KeysOfSet => isObject(set) && 'partitions' in set && 'keys' in set

function notRequests(owner: string, returned: unknown): Error {
  const hint = 'Return run(orders, { … }), an array of such requests, or { runs: [ … ] }.'
  return invalid('bad_result', `${owner} returned ${shown(returned)}`, hint)
}

/** Enough to recognise it. */
const MAX_SHOWN = 200

export function shown(value: unknown): string {
  try {
    return show(value).slice(0, MAX_SHOWN)
  } catch {
    return 'something that is not JSON'
  }
}
