import { describe, expect, test } from 'vitest'
import type { DispatchEnvelope } from '../../src/contract/dispatch.ts'
import { partitionStatus } from '../../src/domain/partitions/partition-status.table.ts'
import { leads } from '../../src/engine/ledger/leading.ts'
import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../../src/lib/time.ts'
import { HeldWorkers } from '../../src/server/leader/dispatch/held-workers.ts'
import { runRequested } from '../../src/server/workspace/requests.ts'
import type { StoreRequest } from '../../src/testing/counting-store.ts'
import { Gate } from '../engine/intercepted-store.ts'
import { Led } from './led.ts'

const DEPOSED = { status: 409, body: { code: 'deposed' } }

/** Somebody else leads, and nobody told this process: it was paused meanwhile. */
const deposeUnheard = ({ lease }: Led): void => lease.lose({ notifies: false })

const remoteQueue: Parameters<typeof Led.open>[0] = { assets: [{ asset_key: 'a', kind: 'asset', queue: 'remote' }] }
const everyPublishIsABase = { compaction: { limits: { max_segments: 1 } } }
const claim = (also: object = {}) => ({ worker_id: 'w1', queues: ['remote'], capacity: 1, ...also })

describe('[E7] a leader that was deposed and does not know it answers nobody', () => {
  test('who asks what it knows, whether it was deposed before the question or while it worked out the answer', async () => {
    const led = await Led.open({ assets: [{ asset_key: 'a', kind: 'asset' }] })
    const run = await led.request('r1')
    await led.clock.advance(MINUTE_MS)
    const questions = ['/runs', `/runs/${run}`, '/assets', '/assets/a', '/partitions']
    for (const path of questions) expect((await led.get(path)).status, path).toBe(200)
    const asked = questions.map((path) => led.get(path))
    deposeUnheard(led)
    for (const answer of await Promise.all(asked)) expect(answer).toMatchObject(DEPOSED)
    for (const path of questions) expect(await led.get(path), path).toMatchObject(DEPOSED)
  })

  test('who wants something done, and does nothing of it', async () => {
    const led = await Led.open({ assets: [{ asset_key: 'a', kind: 'asset' }] })
    const run = await led.request('r1')
    await led.clock.advance(MINUTE_MS)
    const before = await filesIn(led, led.paths.ledger)
    deposeUnheard(led)
    expect(await led.post(`/runs/${run}/rerun`, { mode: 'all' })).toMatchObject(DEPOSED)
    expect(await led.post('/runs', { select: ['*'], key: 'r2' })).toMatchObject(DEPOSED)
    await led.clock.advance(MINUTE_MS)
    expect(await filesIn(led, led.paths.ledger)).toEqual(before)
    expect(led.workers.started).toHaveLength(1)
  })

  test('remote workers: a worker that polls gets no work, and a heartbeat is not answered with permission to go on', async () => {
    const led = await Led.open(remoteQueue)
    await led.request('r1')
    const { body } = await led.post('/workers/claim', claim())
    const [{ task_id, task_token }] = body.dispatches
    await led.request('r2')
    deposeUnheard(led)
    expect(await led.post('/workers/claim', claim())).toMatchObject(DEPOSED)
    expect(await led.post(`/tasks/${task_id}/heartbeat`, { worker_id: 'w1' }, task_token)).toMatchObject(DEPOSED)
  })

  test('who has waited for work since it did lead', async () => {
    const led = await Led.open(remoteQueue)
    const asked = led.post('/workers/claim', claim({ wait_ms: 20_000 }))
    await led.clock.advance(SECOND_MS)
    deposeUnheard(led)
    await led.clock.advance(30 * SECOND_MS)
    expect(await asked).toMatchObject(DEPOSED)
  })
})

/** A request as automation makes it: nobody looks beforehand whether the inputs exist. */
const requestOf = (asset: string, { memory }: Led) =>
  runRequested(
    memory.scope,
    { id: 's1', value: 'secret' },
    {
      run_key: `manual:${asset}`,
      asset_selection: [asset],
      source: { type: 'manual', user_id: 'tester', request_id: asset },
    },
  ).event

describe('[E7] a leader that was deposed and does not know it begins no attempt', () => {
  test('here, if that happened while it read what the attempt is to be given', async () => {
    const led = await Led.open({
      assets: [
        { asset_key: 'a', kind: 'asset' },
        { asset_key: 'b', kind: 'asset', inputs: { a: { asset_key: 'a' } } },
      ],
    })
    await led.request('first', 'a')
    await led.clock.advance(MINUTE_MS)
    await led.server.orchestrator.loop.compactor.publish({ kind: 'base' })
    expect(led.workers.started.map(({ asset_key }) => asset_key)).toEqual(['a'])
    const reading = new Gate(({ path }) => path.startsWith(led.paths.table(partitionStatus.name)))
    led.before = reading.before
    // Acknowledged by a leader, and therefore durable.
    await led.server.orchestrator.submit([requestOf('b', led)])
    await led.clock.advance(0)
    await reading.arrived
    deposeUnheard(led)
    reading.open()
    await led.clock.advance(MINUTE_MS)
    expect(led.workers.started.map(({ asset_key }) => asset_key)).toEqual(['a'])
  })

  test('here, if that happened while the attempt waited for the code to be loaded', async () => {
    const led = await Led.open({ assets: [{ asset_key: 'a', kind: 'asset' }] })
    const held = new HeldWorkers(led.workers, () => leads(led.lease))
    const begun = held.run({ attempt_id: 'held' } as DispatchEnvelope, { onStart: () => undefined, onLog: () => undefined })
    deposeUnheard(led)
    held.release()
    expect(await begun).toEqual({ outcome: 'CANCELLED' })
    expect(led.workers.started).toEqual([])
  })

  test('a remote worker, if that happened between two tries to push to its queue', async () => {
    const told: string[] = []
    const post = async (_: string, { attempt_id }: { attempt_id: string }): Promise<void> => {
      told.push(attempt_id)
      throw new Error('503')
    }
    const queues = { remote: { push: 'https://gpu.example/tasks' } }
    const led = await Led.open({ ...remoteQueue, queues }, { post })
    await led.request('r1')
    await led.clock.advance(2 * SECOND_MS)
    expect(told).toHaveLength(2)
    deposeUnheard(led)
    await led.clock.advance(5 * MINUTE_MS)
    expect(told).toHaveLength(2)
  })
})

test('[E7] a leader that was deposed after it published, and does not know it, collects nothing, and stops', async () => {
  const led = await Led.open({ assets: [{ asset_key: 'a', kind: 'asset' }] }, everyPublishIsABase)
  await led.request('r1')
  await led.clock.advance(MINUTE_MS)
  const before = await filesIn(led, led.paths.manifests)
  await led.clock.advance(2 * HOUR_MS)
  const asked: StoreRequest[] = []
  let isCollecting = false
  led.before = (request) => {
    // Nobody else who leads lists the manifests.
    if (request.method === 'list' && request.path === led.paths.manifests) isCollecting = true
    if (isCollecting) deposeUnheard(led)
    if (isCollecting) asked.push(request)
  }
  await led.request('r2')
  await led.clock.advance(MINUTE_MS)
  expect(isCollecting).toBe(true)
  expect(asked.filter(({ method }) => method !== 'list' && method !== 'get')).toEqual([])
  expect(await filesIn(led, led.paths.manifests)).toEqual(expect.arrayContaining(before))
  expect(led.stopped).toMatchObject([{ code: 'deposed' }])
})

async function filesIn({ memory }: Led, folder: string): Promise<string[]> {
  return (await Array.fromAsync(memory.store.list(folder))).map(({ path }) => path)
}

test('a leader that gives way waits for attempts that were decided upon before, though they had not begun', async () => {
  const led = await Led.open({
    assets: [
      { asset_key: 'a', kind: 'asset' },
      { asset_key: 'b', kind: 'asset', deps: [{ asset_key: 'a' }] },
    ],
  })
  const written = Promise.withResolvers<void>()
  let isWriting = false
  led.before = ({ method, path }) => {
    if (method !== 'create' || !path.startsWith(led.paths.ledger)) return undefined
    isWriting = true
    return written.promise
  }
  void led.request('r1')
  await led.clock.advance(0)
  expect(isWriting).toBe(true)
  let isDrained = false
  const draining = led.server.orchestrator.drain(MINUTE_MS).then(() => {
    isDrained = true
  })
  await led.clock.advance(SECOND_MS)
  expect(isDrained).toBe(false)
  written.resolve()
  await led.clock.advance(SECOND_MS)
  await draining
  expect(led.server.orchestrator.running).toBe(0)
  expect(led.workers.started.map(({ task_key }) => task_key)).toEqual(['a'])
})
