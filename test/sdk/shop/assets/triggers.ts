import { run, schedule, sensor, webhook } from 'servo-flow'
import { z } from 'zod'
import { orders } from './orders.ts'
import { headline, revenue } from './revenue.ts'
import { day, Region, shop } from './vocabulary.ts'

export const nightly = schedule('nightly', {
  cron: '0 5 * * *',
  timezone: 'Europe/Paris',
  select: [orders, revenue, headline],
  catchup: { window: '24h', max: 3 },
})

export const corrections = sensor.push('corrections', {
  source: webhook({
    path: 'corrections',
    verify: 'standard',
    secret: 'SHOP_WEBHOOK_SECRET',
    schema: z.object({ day: day.key, region: Region }),
  }),
  on: (e) => run(orders, { partition: { day: e.day, region: e.region }, key: e.id }),
})

export const lateFiles = sensor.poll('late-files', {
  every: '30s',
  cursor: z.object({ after: z.string() }),
  resources: { shop },
  async poll({ cursor }) {
    return { cursor: { after: cursor?.after ?? '' }, runs: [run(revenue, { partition: '2025-01-01' })] }
  },
})
