import { asset, command, sql, table } from 'servo-flow'
import { z } from 'zod'
import { orders, products } from './raw.ts'

/** Orders with their prices: plain SQL over two tables. */
export const sales = table('mart/sales', {
  description: 'Orders with what they are worth.',
  group: 'mart',
  kinds: ['sql'],
  pool: 'warehouse',
  schema: z.object({ region: z.string(), category: z.string(), day: z.string(), revenue: z.number() }),
  inputs: { orders, products },
  sql: ({ orders, products }) => sql`
    select o.region, p.category, strftime(o.ordered_at, '%Y-%m-%d') as day, o.quantity * p.price as revenue
    from ${orders} o join ${products} p using (product)`,
})

/** Revenue per region. */
export const revenue = table('mart/revenue', {
  description: 'Revenue per region.',
  group: 'mart',
  kinds: ['sql'],
  pool: 'warehouse',
  schema: z.object({ region: z.string(), revenue: z.number() }),
  inputs: { sales },
  checks: { 'never negative': async (rows) => (await rows.sql`select 1 from this where revenue < 0`).length === 0 },
  sql: ({ sales }) => sql`select region, sum(revenue) as revenue from ${sales} group by region order by revenue desc`,
})

/** A small value, kept as JSON. */
export const headline = asset('mart/headline', {
  description: 'The best region, for the front page.',
  group: 'mart',
  inputs: { revenue },
  async run({ revenue, log, metadata }) {
    const [best] = await revenue.rows()
    if (best === undefined) return { text: 'Nothing sold yet.' }
    const text = `${best.region.toUpperCase()} leads with ${best.revenue.toFixed(2)}`
    log.info(text)
    metadata({ region: best.region })
    return { text }
  },
})

/** Any program can be an asset; this one is a shell script that keeps its own data. */
export const report = command('report/summary', {
  description: 'A shell script that runs after the numbers are in.',
  group: 'report',
  deps: [headline],
  run: ['sh', 'scripts/report.sh'],
  timeout: '1m',
})
