import { asset, sql, table } from 'servo-flow'
import { z } from 'zod'
import { day, orders, regions } from './orders.ts'

export const revenue = table('mart/revenue', {
  description: 'Revenue per region and day, in euros.',
  group: 'mart',
  partitions: day,
  schema: z.object({ region: z.string(), orders: z.number(), revenue: z.number() }),
  inputs: { orders, regions },
  checks: {
    'revenue is positive': async (table) => (await table.sql`select 1 from this where revenue <= ${0}`).length === 0,
  },
  sql: ({ orders, regions }) => sql`
    select region, count(*) as orders, round(sum(amount * euros), 2) as revenue
    from ${orders} join ${regions} using (region)
    group by region order by region`,
})

export const headline = asset('mart/headline', {
  description: 'The best region of the day, as a JSON value.',
  group: 'mart',
  partitions: day,
  inputs: { revenue },
  async run({ revenue, partition, log }) {
    const [best] = (await revenue.rows()).toSorted((a, b) => b.revenue - a.revenue)
    log.info(`${best?.region} leads with ${best?.revenue}`)
    return { day: partition.key, region: best?.region ?? null, revenue: best?.revenue ?? 0 }
  },
})
