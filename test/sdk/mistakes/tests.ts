// Tests of assets. Each expectation is a mistake: see mistakes.test.ts.
import { asset, daily, keys, table } from 'servo-flow'
import { materialize } from 'servo-flow/test'
import { z } from 'zod'

const day = daily({ start: '2025-01-01' })
const plain = asset('plain', { run: () => 1 })
const orders = table('orders', { schema: z.object({ amount: z.number() }), run: () => [] })
const total = asset('total', { inputs: { orders, plain }, run: ({ plain }) => plain })
const sold = asset('sold', { partitions: day, run: () => 1 })
const revenue = asset('revenue', { partitions: day, inputs: { orders }, run: () => 1 })
const whole = asset('whole', { inputs: { sold }, run: ({ sold }) => sold.size })

// @ts-expect-error no inputs
materialize(total)

// @ts-expect-error options without inputs
materialize(total, {})

// @ts-expect-error one input missing
materialize(total, { inputs: { plain: 1 } })

// @ts-expect-error a misspelt input
materialize(total, { inputs: { order: [], plain: 1 } })

// @ts-expect-error a value of another type
materialize(total, { inputs: { orders: [], plain: '1' } })

// @ts-expect-error rows of another type
materialize(total, { inputs: { orders: [{ amount: '1' }], plain: 1 } })

// @ts-expect-error one row, not a list
materialize(total, { inputs: { orders: { amount: 1 }, plain: 1 } })

// @ts-expect-error one value for several partitions
materialize(whole, { inputs: { sold: 1 } })

// @ts-expect-error no partition
materialize(sold)

// @ts-expect-error neither a partition nor inputs
materialize(revenue)

// @ts-expect-error inputs without a partition
materialize(revenue, { inputs: { orders: [] } })

// @ts-expect-error a day in words
materialize(sold, { partition: 'monday' })

// @ts-expect-error a partition of an asset without partitions
materialize(plain, { partition: '2025-01-01' })

// @ts-expect-error a misspelt option
materialize(sold, { partitions: '2025-01-01' })

/** These are right. */
export const made = [
  materialize(plain),
  materialize(sold, { partition: '2025-01-01' }),
  materialize(whole, { inputs: { sold: new Map([['2025-01-01', 1]]) } }),
  materialize(whole, { inputs: { sold: { '2025-01-01': 1 } } }),
  materialize(asset('by-key', { partitions: keys(['eu', 'us']), run: () => 1 }), { partition: 'eu' }),
]
