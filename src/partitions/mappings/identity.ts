import { noKeys } from '../key-list.ts'
import { someOf } from '../key-range.ts'
import type { Kind } from './kind.ts'
import { rangesOfKeys } from './ranges-of-keys.ts'

export const identity: Kind<object> = {
  upstream(_, { downstream, upstream }, position) {
    // Most assets of a project share their partitions with others, and then there is nothing to look up.
    if (downstream === upstream) return { ranges: someOf(upstream, [position]), missing: noKeys }
    return rangesOfKeys(upstream, [downstream.at(position)])
  },
  downstream(_, { downstream, upstream }, position) {
    const same = downstream.positionOf(upstream.at(position))
    return same === undefined ? [] : someOf(downstream, [same])
  },
}
