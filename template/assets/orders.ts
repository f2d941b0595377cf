import { check, daily, table } from 'servo-flow'
import { z } from 'zod'

/** One partition per day. Each is made, stale or missing on its own. */
export const day = daily({ start: '2025-01-01' })

export const regions = table('raw/regions', {
  description: 'Where the shop sells, and what its currency is worth.',
  group: 'raw',
  schema: z.object({ region: z.string(), currency: z.string(), euros: z.number() }),
  checks: { 'one row per region': check.unique('region') },
  run: () => [
    { region: 'eu', currency: 'EUR', euros: 1 },
    { region: 'uk', currency: 'GBP', euros: 1.15 },
    { region: 'us', currency: 'USD', euros: 0.92 },
  ],
})

export const orders = table('raw/orders', {
  description: 'The orders of a day. Demo data: replace the body with a call to your shop.',
  group: 'raw',
  partitions: day,
  schema: z.object({ id: z.string(), region: z.string(), amount: z.number() }),
  retry: 3,
  checks: {
    'not empty': check.rowCount({ min: 1 }),
    'one row per order': check.unique('id'),
  },
  run({ partition, log }) {
    const rows = ordersOf(partition.key)
    log.info('orders read', { day: partition.key, rows: rows.length })
    return rows
  },
})

/** Always the same orders for the same day. */
function ordersOf(date: string): { id: string; region: string; amount: number }[] {
  const seed = Date.parse(date) / 86_400_000
  return Array.from({ length: 20 + (seed % 7) }, (_, index) => ({
    id: `${date}-${index + 1}`,
    region: ['eu', 'uk', 'us'][(seed + index) % 3] ?? 'eu',
    amount: 10 + ((seed * 31 + index * 17) % 90),
  }))
}
