import { someOf } from '../key-range.ts'
import type { Kind } from './kind.ts'
import { rangesOfKeys } from './ranges-of-keys.ts'

type KeyTable = Readonly<Record<string, string | readonly string[]>>

export const staticMap: Kind<{ readonly keys: KeyTable }> = {
  upstream({ keys }, { downstream, upstream }, position) {
    return rangesOfKeys(upstream, inverseOf(keys).get(downstream.at(position)) ?? [])
  },
  downstream({ keys }, { downstream, upstream }, position) {
    const positions = downstreamKeys(keys, upstream.at(position)).map((key) => downstream.positionOf(key))
    return someOf(
      downstream,
      positions.filter((it) => it !== undefined),
    )
  },
}

function downstreamKeys(table: KeyTable, upstreamKey: string): readonly string[] {
  const keys = Object.hasOwn(table, upstreamKey) ? table[upstreamKey] : undefined
  return keys === undefined ? [] : [keys].flat()
}

/** How many upstream partitions a downstream one is made from at most. */
export function mostUpstream(table: KeyTable): number {
  let most = 0
  for (const upstreamKeys of inverseOf(table).values()) most = Math.max(most, upstreamKeys.length)
  return most
}

const inverses = new WeakMap<KeyTable, ReadonlyMap<string, readonly string[]>>()

/** Made once for a table, because every partition of a plan needs it. */
function inverseOf(table: KeyTable): ReadonlyMap<string, readonly string[]> {
  const known = inverses.get(table)
  if (known !== undefined) return known
  const inverse = new Map<string, string[]>()
  for (const upstreamKey of Object.keys(table)) {
    for (const key of downstreamKeys(table, upstreamKey)) {
      const upstreamKeys = inverse.get(key)
      if (upstreamKeys === undefined) inverse.set(key, [upstreamKey])
      else upstreamKeys.push(upstreamKey)
    }
  }
  inverses.set(table, inverse)
  return inverse
}
