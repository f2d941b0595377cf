import { schedule } from 'servo-flow'
import { orders, regions } from './orders.ts'
import { headline, revenue } from './revenue.ts'

/** Makes the day that has just ended. `servo dev` ticks; `npx servo schedules trigger nightly` does not wait for it. */
export const nightly = schedule('nightly', {
  cron: '0 6 * * *',
  timezone: 'UTC',
  select: [regions, orders, revenue, headline],
})
