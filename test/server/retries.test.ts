import { expect, test } from 'vitest'
import { runSubject } from '../../src/domain/subjects.ts'
import { timers } from '../../src/domain/timers/timers.table.ts'
import { failure, World } from './world.ts'

const retry = { max_attempts: 3, backoff: 'exponential', initial_ms: 1_000, max_ms: 60_000, jitter: false } as const

test('[R2] a task that asks to wait longer than its backoff is tried when it asked to be', async () => {
  const world = await World.open({
    script: ({ attempt }) => (attempt === 1 ? { result: failure({ retry_after_ms: 30_000 }) } : {}),
  })
  await world.define({ a: { retry } })
  const run = await world.request('r1')
  await world.clock.advance(29_000)
  expect(world.task(run, 'a')?.state).toBe('RETRY_WAIT')
  await world.clock.advance(2_000)
  expect(world.run(run)?.state).toBe('SUCCEEDED')
})

test('[R2] a task that asks to wait less than its backoff waits for its backoff', async () => {
  const world = await World.open({
    script: ({ attempt }) => (attempt === 1 ? { result: failure({ retry_after_ms: 10 }) } : {}),
  })
  await world.define({ a: { retry } })
  const run = await world.request('r1')
  await world.clock.advance(900)
  expect(world.task(run, 'a')?.state).toBe('RETRY_WAIT')
  await world.clock.advance(200)
  expect(world.run(run)?.state).toBe('SUCCEEDED')
})

test('[R2] a task waits as its own policy says, beside one that waits as another says', async () => {
  const world = await World.open({ script: ({ attempt }) => (attempt === 1 ? { result: failure() } : {}) })
  await world.define({ a: { retry: { ...retry, initial_ms: 20_000 } }, b: { retry: { ...retry, initial_ms: 40_000 } } })
  const run = await world.request('r1')
  await world.clock.advance(19_000)
  expect(world.states(run)).toEqual({ a: 'RETRY_WAIT', b: 'RETRY_WAIT' })
  await world.clock.advance(2_000)
  expect(world.states(run)).toEqual({ a: 'SUCCEEDED', b: 'RETRY_WAIT' })
  await world.clock.advance(20_000)
  expect(world.run(run)?.state).toBe('SUCCEEDED')
})

test('[R2][R4] a task that fails after it lost its worker twice waits as after its first failure', async () => {
  const script = ({ attempt }: { attempt: number }) => {
    if (attempt <= 2) return { ms: 600_000 }
    return attempt === 3 ? { result: failure() } : {}
  }
  const world = await World.open({ script })
  await world.define({ a: { retry: { ...retry, initial_ms: 10_000 } } })
  const run = await world.request('r1')
  for (let lost = 0; lost < 2; lost++) {
    await world.clock.advance(1_000)
    await world.crash()
  }
  await world.clock.advance(9_000)
  expect(world.task(run, 'a')).toMatchObject({ state: 'RETRY_WAIT', attempt: 3, lost_attempts: 2 })
  await world.clock.advance(2_000)
  expect(world.run(run)?.state).toBe('SUCCEEDED')
})

test('[R2] a task is tried at the same moment whichever process works that out', async () => {
  const jittery = { ...retry, jitter: true }
  const due = async (): Promise<number> => {
    const world = await World.open({ script: () => ({ result: failure() }) })
    await world.define({ a: { retry: jittery } })
    const run = await world.request('r1')
    await world.clock.advance(1)
    const [alarm] = world.orchestrator.loop.compactor.state.hot(timers).under(runSubject(run))
    return alarm?.fire_at ?? 0
  }
  const first = await due()
  expect(first).toBeGreaterThan(0)
  expect(await due()).toBe(first)
})
