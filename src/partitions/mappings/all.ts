import { noKeys } from '../key-list.ts'
import { allOf, someOf } from '../key-range.ts'
import type { Kind } from './kind.ts'

export const all: Kind<object> = {
  upstream: (_, { upstream }) => ({ ranges: [allOf(upstream)], missing: noKeys }),
  downstream: (_, { downstream }) => [allOf(downstream)],
}

/** Of several dimensions, the last of each. */
export const last: Kind<object> = {
  upstream: (_, { upstream }) => ({
    ranges: upstream.count === 0 ? [] : someOf(upstream, [upstream.count - 1]),
    missing: noKeys,
  }),
  downstream: (_, { downstream, upstream }, position) => (position === upstream.count - 1 ? [allOf(downstream)] : []),
}
