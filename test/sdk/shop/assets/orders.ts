import { check, table } from 'servo-flow'
import { z } from 'zod'
import { market, Order, shop } from './vocabulary.ts'

/** Orders as the shop API returns them, one Parquet file per day and region. */
export const orders = table('raw/orders', {
  partitions: market,
  schema: Order,
  resources: { shop },
  metadata: z.object({ rows: z.number(), revenue: z.number() }),
  retry: { attempts: 5, backoff: 'exponential', initial: '2s', max: '5m', jitter: true },
  pool: 'shop-api',
  checks: {
    'not empty': check.rowCount({ min: 1 }),
    'one row per order': check.unique('id'),
  },
  async run({ partition, resources, metadata }) {
    const { start, end } = partition.window.day
    const rows = await resources.shop.orders(partition.key.region, start, end)
    metadata({ rows: rows.length, revenue: rows.reduce((sum, o) => sum + o.amount, 0) })
    return rows
  },
})
