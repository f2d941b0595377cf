// Schedules, sensors, config and errors. Each expectation is a mistake: see mistakes.test.ts.
import { asset, daily, defineConfig, inProcess, local, pubsub, RetryAfter, run, schedule, sensor, webhook } from 'servo-flow'
import { z } from 'zod'

const orders = asset('orders', { run: () => 1 })
const sold = asset('sold', { partitions: daily({ start: '2025-01-01' }), run: () => 1 })
const schema = z.object({ id: z.string(), day: z.string() })
const source = webhook({ path: 'shop', verify: 'standard', secret: 'SHOP_SECRET', schema })

// @ts-expect-error a schedule without cron
schedule('nightly', { select: orders })

// @ts-expect-error a schedule of nothing
schedule('nightly', { cron: '0 5 * * *' })

// @ts-expect-error a cron option of another tool
schedule('nightly', { cronSchedule: '0 5 * * *', select: orders })

// @ts-expect-error a misspelt zone option
schedule('nightly', { cron: '0 5 * * *', timeZone: 'Europe/Paris', select: orders })

// @ts-expect-error an unknown overlap policy
schedule('nightly', { cron: '0 5 * * *', select: orders, overlap: 'cancel' })

// @ts-expect-error a switch for catch-up
schedule('nightly', { cron: '0 5 * * *', select: orders, catchup: true })

// @ts-expect-error a run request as the selection
schedule('nightly', { cron: '0 5 * * *', select: run(orders) })

// @ts-expect-error a condition that returns text
schedule('nightly', { cron: '0 5 * * *', select: orders, when: () => 'no' })

// @ts-expect-error a webhook without its secret
webhook({ path: 'shop', verify: 'standard', schema })

// @ts-expect-error an unknown verification
webhook({ path: 'shop', verify: 'hmac', secret: 'SHOP_SECRET', schema })

// @ts-expect-error a secret that nothing verifies
webhook({ path: 'shop', verify: 'none', secret: 'SHOP_SECRET', schema })

// @ts-expect-error a webhook without a schema
webhook({ path: 'shop', verify: 'none' })

// @ts-expect-error a subscription instead of a topic
pubsub({ subscription: 'projects/shop/subscriptions/orders', schema })

// @ts-expect-error a sensor without a handler
sensor.push('shop', { source })

// @ts-expect-error a sensor without a source
sensor.push('shop', { on: () => run(orders) })

// @ts-expect-error a sensor that returns an asset
sensor.push('shop', { source, on: () => orders })

// @ts-expect-error a misspelt field of an event
sensor.push('shop', { source, on: (event) => run(orders, { key: event.orderId }) })

// @ts-expect-error text of an event as a partition
sensor.push('shop', { source, on: (event) => run(sold, { partition: event.day }) })

// @ts-expect-error a poll without an interval
sensor.poll('files', { cursor: schema, poll: () => ({ runs: [] }) })

// @ts-expect-error a poll that returns a list
sensor.poll('files', { every: '30s', cursor: schema, poll: () => [run(orders)] })

sensor.poll('files', {
  every: '30s',
  cursor: z.object({ after: z.string() }),
  // @ts-expect-error a cursor of another type
  poll: () => ({ cursor: { after: 1 }, runs: [] }),
})

// @ts-expect-error an unknown happening
sensor.asset('made', { watch: orders, happenings: ['failed'], on: () => run(orders) })

// @ts-expect-error a run state in lower case
sensor.run('failed', { states: ['failed'], on: () => run(orders) })

// @ts-expect-error a message instead of a duration
new RetryAfter('the API is busy')

// @ts-expect-error seconds as a number
new RetryAfter(30)

// @ts-expect-error a config without its folders
defineConfig({ project: 'shop' })

// @ts-expect-error one folder, not a list
defineConfig({ project: 'shop', dirs: 'assets' })

// @ts-expect-error a limit in quotes
defineConfig({ project: 'shop', dirs: ['assets'], pools: { db: '4' } })

// @ts-expect-error an unknown time limit
defineConfig({ project: 'shop', dirs: ['assets'], timing: { heartbeat: '1m' } })

// @ts-expect-error a folder as storage
defineConfig({ project: 'shop', dirs: ['assets'], environments: { dev: { storage: '.servo', queue: inProcess() } } })

// @ts-expect-error an environment without a queue
defineConfig({ project: 'shop', dirs: ['assets'], environments: { dev: { storage: local('.servo') } } })
