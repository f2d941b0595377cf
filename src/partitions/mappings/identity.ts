import { someOf } from '../key-range.ts'
import type { Kind } from './kind.ts'
import { listed } from './listed.ts'

export const identity: Kind<object> = {
  upstream: (_, { downstream, upstream }, position) => listed(upstream, [downstream.at(position)]),
  downstream(_, { downstream, upstream }, position) {
    const same = downstream.positionOf(upstream.at(position))
    return same === undefined ? [] : someOf(downstream, [same])
  },
}
