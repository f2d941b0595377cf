import { asset, command, sql, table } from 'servo-flow'
import { z } from 'zod'
import { orders } from './orders.ts'
import { day, Region } from './vocabulary.ts'

/** Revenue per region and day: plain SQL over every region's orders of that day. */
export const revenue = table('mart/revenue', {
  partitions: day,
  schema: z.object({ region: Region, revenue: z.number(), orders: z.number() }),
  inputs: { orders: orders.all('region') },
  freshness: { by: '07:30', timezone: 'Europe/Paris' },
  checks: {
    'never negative': async (t) => (await t.sql`select 1 from this where revenue < 0`).length === 0,
  },
  sql: ({ orders }) => sql`
    select region, sum(amount) as revenue, count(*) as orders
    from ${orders} group by region`,
})

/** Python keeps its own data and reports rows, metadata and checks over Pipes. */
export const forecast = command('ml/forecast', {
  partitions: day,
  deps: [revenue],
  run: ['uv', 'run', 'ml/forecast.py', '--day', (p) => p.key],
  pipes: true,
  timeout: '30m',
})

/** A small value (stored as JSON): today against yesterday. */
export const headline = asset('mart/headline', {
  partitions: day,
  inputs: { today: revenue, yesterday: revenue.offset(-1) },
  deps: [forecast],
  async run({ today, yesterday, partition }) {
    const sum = async (t: typeof today) => (await t.rows()).reduce((s, r) => s + r.revenue, 0)
    return { day: partition.key, total: await sum(today), before: await sum(yesterday) }
  },
})
