import { expect, test } from 'vitest'
import { HOUR_MS, MINUTE_MS } from '../../src/lib/time.ts'
import { Remote } from './remote.ts'
import { World } from './world.ts'

test('[W4] a report about an attempt that was given up changes nothing while the task waits for its retry, and the answer says so', async () => {
  const world = await World.open()
  const remote = new Remote(world)
  const retry = { max_attempts: 2, initial_ms: HOUR_MS, max_ms: HOUR_MS, jitter: false }
  await world.define({ a: { queue: 'gpu', timeout_sec: 60, retry } })
  const run = await world.request('r1')
  const work = await remote.take('w1')
  for (let beat = 0; beat < 4; beat++) {
    await world.clock.advance(MINUTE_MS / 2)
    await remote.heartbeat(work, 'w1')
  }
  expect(world.task(run, 'a')?.state).toBe('RETRY_WAIT')
  const rows = () => JSON.stringify([world.run(run), world.task(run, 'a'), world.attempts(run, 'a')])
  const before = rows()
  expect(await remote.started(work, 'w1')).toMatchObject({ status: 409, body: { should_cancel: true } })
  expect(await remote.heartbeat(work, 'w1')).toMatchObject({ status: 200, body: { should_cancel: true } })
  expect(await remote.completed(work)).toMatchObject({ status: 409, body: { should_cancel: true } })
  expect(rows()).toBe(before)
})
