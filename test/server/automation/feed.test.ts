import { expect, test } from 'vitest'
import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../../../src/lib/time.ts'
import type { Change } from '../../../src/server/leader/feed.ts'
import { Led } from '../led.ts'

const project = {
  assets: [{ asset_key: 'orders', kind: 'asset' as const }],
  schedules: [{ name: 'hourly', cron_expressions: ['0 * * * *'], asset_selection: ['orders'] }],
}

/** What `servo dev` is told of schedules, once each. */
async function opened() {
  const led = await Led.open(project, { automation: true })
  const told: string[] = []
  led.server.feed.listen((change: Change) => {
    if (change.type === 'tick') told.push(`${change.schedule.schedule_name} ${change.tick.cause} ${change.tick.status}`)
    if (change.type === 'switch') told.push(`${change.name} ${change.to} by ${change.by}: ${change.reason}`)
  })
  const settle = () => led.clock.advance(MINUTE_MS)
  return { led, told, settle }
}

test('each tick is told once: of the clock, by hand, and those skipped while paused', async () => {
  const { led, told, settle } = await opened()
  await led.post('/schedules/hourly/trigger', { request_id: 'a' })
  await led.post('/schedules/hourly/trigger', { request_id: 'b' })
  await settle()
  expect(told).toEqual(['hourly manual triggered', 'hourly manual triggered'])
  await led.clock.advance(HOUR_MS)
  expect(told.slice(2)).toEqual(['hourly cron triggered'])
  await led.post('/schedules/hourly/pause', { reason: 'moving' })
  await led.clock.advance(HOUR_MS)
  await settle()
  expect(told.slice(3)).toEqual(['hourly paused by local: moving', 'hourly cron skipped'])
})

test('runs that began or ended before anybody listened are told once, with their ticks', async () => {
  const led = await Led.open(project, { automation: true })
  await led.post('/schedules/hourly/trigger', { request_id: 'a' })
  await led.post('/schedules/hourly/trigger', { request_id: 'b' })
  await led.clock.advance(SECOND_MS)
  const told: string[] = []
  const listen = (change: Change) => {
    if (change.type === 'run') told.push(`run ${change.isNew ? 'began' : change.run.state}`)
    if (change.type === 'tick') told.push(`tick ${change.tick.run_id?.slice(0, 4)}`)
  }
  led.server.feed.listen(listen, { sinceOpened: true })
  await led.clock.advance(MINUTE_MS)
  expect(told.filter((each) => each === 'run began')).toHaveLength(2)
  expect(told.filter((each) => each === 'tick run_')).toHaveLength(2)
  const before = told.length
  led.server.feed.listen(() => undefined, { sinceOpened: true })
  await led.clock.advance(MINUTE_MS)
  expect(told).toHaveLength(before)
})

test('pauses and resumes are told, of a schedule and of all automation', async () => {
  const { led, told, settle } = await opened()
  await led.post('/schedules/hourly/pause', {})
  await led.post('/schedules/hourly/resume', { reason: 'done' })
  await led.post('/automation/pause', { reason: 'maintenance' })
  await led.post('/automation/resume', {})
  await settle()
  expect(told).toEqual([
    'hourly paused by local: null',
    'hourly resumed by local: done',
    'null paused by local: maintenance',
    'null resumed by local: null',
  ])
})
