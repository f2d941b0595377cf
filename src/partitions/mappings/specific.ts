import { allOf } from '../key-range.ts'
import type { Kind } from './kind.ts'
import { rangesOfKeys } from './ranges-of-keys.ts'

export const specific: Kind<{ readonly keys: readonly string[] }> = {
  upstream: ({ keys }, { upstream }) => rangesOfKeys(upstream, keys),
  downstream({ keys }, { downstream, upstream }, position) {
    // By position: of several dimensions a key may be written in any order.
    return keys.some((key) => upstream.positionOf(key) === position) ? [allOf(downstream)] : []
  },
}
