import { expect, test } from 'vitest'
import { memoryStore } from '../../src/adapters/memory/object-store.ts'
import { SECOND_MS } from '../../src/lib/time.ts'
import { type Knowledge, knowledgeOf } from '../../src/server/workspace/knowledge.ts'
import { workspaceApi } from '../../src/server/workspace/workspace.ts'
import { countingStore } from '../../src/testing/counting-store.ts'
import { World, type WorldOptions } from './world.ts'

const secret = { id: 'secret-1', value: 'not a secret' }

/** A world with a run whose only task takes a second, and the API for runs over it. */
async function withRun(options: WorldOptions = {}, also: (world: World) => Partial<Knowledge> = () => ({})) {
  const world = await World.open({ script: () => ({ ms: SECOND_MS, deaf: true }), ...options })
  await world.define({ a: [] })
  const known = { ...knowledgeOf(world.components, world.orchestrator), ...also(world) }
  const { runs } = workspaceApi(known, { runIds: () => secret })
  const { run_id } = await runs.request({ select: ['*'], key: 'nightly' }, 'ada')
  await world.clock.advance(SECOND_MS / 10)
  expect(world.task(run_id, 'a')?.state).toBe('DISPATCHED')
  return { world, runs, run_id }
}

test('[C1] cancelling a run twice is accepted twice, and counts once', async () => {
  const { world, runs, run_id } = await withRun()
  await expect(runs.cancel(run_id, 'ada', undefined)).resolves.toMatchObject({ run_id })
  const cancelled = { ...world.run(run_id) }
  expect(cancelled).toMatchObject({ cancel_requested_by: 'ada' })
  await expect(runs.cancel(run_id, 'grace', undefined)).resolves.toMatchObject({ run_id })
  expect(world.run(run_id)).toEqual(cancelled)
})

test('[C1] a run that has ended cannot be cancelled: the request is refused, and nothing is written', async () => {
  const store = countingStore(memoryStore())
  const { world, runs, run_id } = await withRun({ store })
  await world.clock.advance(2 * SECOND_MS)
  expect(world.run(run_id)?.state).toBe('SUCCEEDED')
  await world.orchestrator.publish()
  store.reset()
  await expect(runs.cancel(run_id, 'ada', undefined)).rejects.toMatchObject({
    kind: 'conflict',
    code: 'run_over',
    message: `${run_id} has already ended: succeeded`,
  })
  expect(store.requests).toEqual([])
})

test('[C1] a run that ends while a request to cancel it is on its way is not reported as cancelled', async () => {
  const { world, runs, run_id } = await withRun({}, ({ clock, orchestrator }) => ({
    async submit(events) {
      await clock.advance(2 * SECOND_MS)
      return await orchestrator.submit(events)
    },
  }))
  expect(world.run(run_id)?.state).toBe('RUNNING')
  await expect(runs.cancel(run_id, 'ada', undefined)).rejects.toMatchObject({
    kind: 'conflict',
    code: 'run_over',
    message: `${run_id} has already ended: succeeded`,
  })
  expect(world.run(run_id)).toMatchObject({ state: 'SUCCEEDED', cancel_requested_at: null })
})
