import { schedule } from 'servo-flow'
import { orders, regions } from './orders.ts'
import { headline, revenue } from './revenue.ts'

/** Materializes the day that has just ended, while `servo dev` runs. `npx servo schedules trigger nightly` runs it now. */
export const nightly = schedule('nightly', {
  cron: '0 6 * * *',
  timezone: 'UTC',
  select: [regions, orders, revenue, headline],
})
