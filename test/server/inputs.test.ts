import { expect, test } from 'vitest'
import { TaskFinished } from '../../src/domain/tasks/task-finished.event.ts'
import { MINUTE_MS, SECOND_MS, toIso } from '../../src/lib/time.ts'
import { newEvent } from '../../src/model/event.ts'
import { World } from './world.ts'

const retry = { max_attempts: 3, backoff: 'exponential', initial_ms: 1_000, max_ms: 60_000, jitter: false } as const

test('[D3] a task reads what its own run made, though another run has made that again since', async () => {
  const world = await World.open({ script: ({ asset_key }) => ({ ms: asset_key === 'slow' ? MINUTE_MS : 0 }) })
  await world.define({
    a: [],
    slow: [],
    b: { inputs: { a: { asset_key: 'a' } }, deps: [{ asset_key: 'slow' }] },
    alone: { inputs: { a: { asset_key: 'a' } } },
  })
  const own = await world.request('own', '+key:b')
  await world.clock.advance(SECOND_MS)
  const other = await world.request('other', 'key:a')
  await world.clock.advance(2 * MINUTE_MS)
  await world.request('later', 'key:alone')
  await world.clock.advance(SECOND_MS)
  const made = [own, other].map((run) => world.task(run, 'a')?.materialization_id)
  const read = (asset: string) =>
    world.workers.started.find(({ asset_key }) => asset_key === asset)?.payload.inputs['a']?.values
  expect(made[0]).not.toBe(made[1])
  expect(read('b')).toMatchObject([{ materialization_id: made[0] }])
  expect(read('alone'), 'the last that any run made').toMatchObject([{ materialization_id: made[1] }])
})

test('[D3] a task whose input is on record as lying where nothing of it is kept fails and says so, and never reaches a worker', async () => {
  const world = await World.open({ script: ({ asset_key }) => (asset_key === 'a' ? { ms: MINUTE_MS } : {}) })
  await world.define({ a: [], b: { inputs: { a: { asset_key: 'a' } } } })
  const run = await world.request('r1')
  const [attempt] = world.attempts(run, 'a')
  // As an older version wrote it, which believed what it was told.
  const { run_id, task_key, attempt_id } = attempt as NonNullable<typeof attempt>
  const end = { run_id, task_key, attempt_id, attempt: 1, outcome: 'SUCCEEDED' as const, materialization_id: 'm1' }
  const output = { path: '../../../../outside.parquet' }
  const completed_at = toIso(world.clock.now())
  await world.orchestrator.submit([newEvent(TaskFinished, { ...end, completed_at, output })])
  await world.clock.advance(SECOND_MS)
  expect(world.states(run)).toEqual({ a: 'SUCCEEDED', b: 'FAILED' })
  expect(world.task(run, 'b')).toMatchObject({ attempt: 1, error_message: expect.stringContaining('outside.parquet') })
  expect(world.task(run, 'b')?.error_message).toMatch(/Materialize a again/)
  expect(world.workers.started.map(({ asset_key }) => asset_key)).toEqual(['a'])
})

test('[D3] a task whose input was never made fails, is not tried again, and says what to run', async () => {
  const world = await World.open()
  await world.define({ a: [], b: { inputs: { a: { asset_key: 'a' } }, retry } })
  const run = await world.request('r1', 'key:b')
  await world.clock.advance(MINUTE_MS)
  expect(world.run(run)?.state).toBe('FAILED')
  expect(world.attempts(run, 'b')).toMatchObject([{ attempt: 1, outcome: 'FAILED', retryable: false }])
  expect(world.task(run, 'b')?.error_message).toMatch(/b needs a .* which was never materialized\nRun it too: servo run/)
  expect(world.workers.started).toEqual([])
})
