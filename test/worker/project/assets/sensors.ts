import { resource, run, schedule, sensor, webhook } from 'servo-flow'
import { z } from 'zod'
import { rates } from './shop.ts'

const clock = resource('clock', { open: () => ({ year: 2025 }) })
const order = webhook({ path: 'orders', verify: 'none', schema: z.object({ order: z.string() }) })

export const orders = sensor.push('orders', {
  source: order,
  resources: { clock },
  on: ({ order, id }, { resources }) => run(rates, { key: id, labels: { order, year: String(resources.clock.year) } }),
})

export const broken = sensor.push('broken', {
  source: webhook({ path: 'broken', verify: 'none', schema: z.unknown() }),
  on() {
    console.log('looking for the table')
    throw new TypeError('no such table')
  },
})

export const large = sensor.poll('large', {
  every: '1m',
  cursor: z.string(),
  poll: () => ({ cursor: 'x'.repeat(10_000_000), runs: [] }),
})

export const nightly = schedule('nightly', {
  cron: '@daily',
  select: rates,
  when({ scheduledFor }) {
    const day = scheduledFor.getUTCDay()
    if (day === 0) console.log('day', day)
    return { run: day !== 0, reason: 'it is Sunday' }
  },
})
