import { describe, expect, test } from 'vitest'
import type { DispatchEnvelope } from '../../src/contract/dispatch.ts'
import { MINUTE_MS, SECOND_MS } from '../../src/lib/time.ts'
import { Remote } from './remote.ts'
import { World } from './world.ts'

const gpu = { push: 'https://gpu.example/secret/tasks' }

/** A queue at an address: it takes what it is told, unless `refuses` says so. */
async function withQueue({ refuses = () => false }: { refuses?: (told: number) => boolean } = {}) {
  const told: { at: number; envelope: DispatchEnvelope }[] = []
  const troubles: unknown[] = []
  const world: World = await World.open({
    options: {
      remote: {
        post: async (url, envelope) => {
          expect(url).toBe(gpu.push)
          told.push({ at: world.clock.now(), envelope })
          if (refuses(told.length)) throw new Error('503')
        },
      },
      onTrouble: (error) => troubles.push(error),
    },
  })
  const remote = new Remote(world)
  remote.pushTo({ gpu })
  await world.define({ a: { queue: 'gpu' }, below: ['a'] })
  return { world, remote, told, troubles, first: () => told[0]?.envelope as DispatchEnvelope }
}

describe('a queue that is told of work', () => {
  test('gets the envelope with all that its worker needs to answer', async () => {
    const { world, remote, told, first } = await withQueue()
    const run = await world.request('r1')
    await world.clock.advance(1)
    expect(told).toHaveLength(1)
    expect(first()).toMatchObject({
      asset_key: 'a',
      task_token: expect.any(String),
      token_expires_at: expect.any(String),
      callback_base_url: 'https://servo.example',
      traceparent: expect.stringMatching(/^00-/),
    })
    expect(world.dispatch(run, 'a')).toMatchObject({ status: 'CREATED', worker_queue: 'gpu' })
    expect(await remote.ask('w1'), 'what is told is not offered, too').toEqual([])
    expect((await remote.started(first(), 'w1')).status).toBe(200)
    expect(world.dispatch(run, 'a')?.status).toBe('ACKED')
    expect((await remote.completed(first())).status).toBe(200)
    await world.clock.advance(SECOND_MS)
    expect(world.run(run)?.state).toBe('SUCCEEDED')
    expect(await world.problems()).toEqual([])
  })

  test('and does not answer is told again, with pauses that grow', async () => {
    const { world, told } = await withQueue({ refuses: (count) => count <= 3 })
    const run = await world.request('r1')
    const began = world.clock.now()
    await world.clock.advance(MINUTE_MS)
    expect(told.map(({ at }) => (at - began) / SECOND_MS)).toEqual([0, 1, 3, 7])
    expect(new Set(told.map(({ envelope }) => envelope.task_id)).size).toBe(1)
    expect(world.dispatch(run, 'a')?.status).toBe('CREATED')
  })

  test('[D4] and cannot be reached for long is on record as such, and told again after ten minutes: the same attempt', async () => {
    const { world, remote, told, troubles } = await withQueue({ refuses: (count) => count <= 6 })
    const run = await world.request('r1')
    await world.clock.advance(MINUTE_MS)
    expect(told).toHaveLength(6)
    expect(world.dispatch(run, 'a')?.status).toBe('FAILED')
    expect(troubles).toMatchObject([{ code: 'push_failed', message: 'the queue gpu at https://gpu.example did not accept a' }])
    await world.clock.advance(9 * MINUTE_MS)
    expect(told).toHaveLength(7)
    expect(world.dispatch(run, 'a')).toMatchObject({ status: 'CREATED', offer: 2 })
    expect(world.attempts(run, 'a')).toHaveLength(1)
    const last = told.at(-1)?.envelope as DispatchEnvelope
    expect(last.attempt_id).toBe(told[0]?.envelope.attempt_id)
    expect((await remote.completed(last)).status).toBe(200)
  })

  test('[T12][D4] and loses what it took is told again; when it was only slow, the first worker to begin has it', async () => {
    const { world, remote, told, first } = await withQueue()
    const run = await world.request('r1')
    await world.clock.advance(10 * MINUTE_MS + 1)
    expect(told).toHaveLength(2)
    const second = told[1]?.envelope as DispatchEnvelope
    expect((await remote.started(second, 'w2')).status).toBe(200)
    expect((await remote.started(first(), 'w1')).status).toBe(409)
    expect(world.attempts(run, 'a')).toMatchObject([{ attempt: 1, worker_id: 'w2' }])
  })

  test('[O4] is told nothing twice by a restart, and everything that it was not told yet', async () => {
    const { world, remote, told } = await withQueue({ refuses: (count) => count <= 2 })
    const run = await world.request('r1')
    await world.clock.advance(SECOND_MS)
    expect(told).toHaveLength(2)
    await world.crash(MINUTE_MS)
    await world.clock.advance(SECOND_MS)
    expect(told, 'until it is known where queues are').toHaveLength(2)
    remote.pushTo({ gpu })
    await world.clock.advance(SECOND_MS)
    expect(told).toHaveLength(3)
    expect(world.dispatch(run, 'a')?.status).toBe('CREATED')
    await world.crash()
    remote.pushTo({ gpu })
    await world.clock.advance(5 * MINUTE_MS)
    expect(told).toHaveLength(3)
  })

  test('[O4] is told nothing twice by sweeps, while it is being told', async () => {
    const { world, told } = await withQueue({ refuses: (count) => count <= 3 })
    await world.request('r1')
    const began = world.clock.now()
    for (let sweep = 0; sweep < 10; sweep++) {
      await world.clock.advance(SECOND_MS)
      world.orchestrator.loop.sweep()
    }
    expect(told.map(({ at }) => (at - began) / SECOND_MS)).toEqual([0, 1, 3, 7])
  })

  test('is told no more of a run that was cancelled, which ends in time', async () => {
    const { world, told } = await withQueue({ refuses: () => true })
    const run = await world.request('r1')
    await world.clock.advance(2 * SECOND_MS)
    await world.cancel(run)
    const before = told.length
    await world.clock.advance(12 * SECOND_MS)
    expect(world.run(run)?.state).toBe('CANCELLED')
    await world.clock.advance(30 * MINUTE_MS)
    expect(told).toHaveLength(before)
  })
})

test('a queue whose address was taken away is one that is asked', async () => {
  const { world, remote } = await withQueue({ refuses: () => true })
  await world.request('r1')
  await world.clock.advance(SECOND_MS)
  remote.pushTo({})
  expect(await remote.ask('w1')).toMatchObject([{ asset_key: 'a' }])
})
