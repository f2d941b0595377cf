import { expect, test } from 'vitest'
import { checksumOf } from '../../src/contract/stored-output.ts'
import { storedValues } from '../../src/domain/partitions/stored-values.table.ts'
import { DataRemoved } from '../../src/domain/retention/data-removed.event.ts'
import { runValues } from '../../src/domain/runs/run-values.table.ts'
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

/** How a worker reports a small value. */
const inline = (value: string) => ({ value, ...checksumOf(new TextEncoder().encode(value)) })

test('[D9] a small value reaches the tasks of its own run though another run has made a newer one, later runs get the newest, and both survive a crash', async () => {
  let made = 0
  const result = () => ({ outcome: 'SUCCEEDED' as const, materialization_id: `m${++made}`, output: inline(`{"made":${made}}`) })
  const world = await World.open({
    script: ({ asset_key }) => (asset_key === 'a' ? { result: result() } : { ms: asset_key === 'slow' ? 2 * MINUTE_MS : 0 }),
  })
  await world.define({
    a: [],
    slow: [],
    b: { inputs: { a: { asset_key: 'a' } }, deps: [{ asset_key: 'slow' }] },
    alone: { inputs: { a: { asset_key: 'a' } } },
  })
  const own = await world.request('own', '+key:b')
  await world.clock.advance(SECOND_MS)
  await world.request('other', 'key:a')
  await world.clock.advance(MINUTE_MS)
  const { state } = world.orchestrator.loop.compactor
  // The other run has ended, and what it made is nobody's input within it.
  expect([...state.hot(runValues).all()].map(({ task_key, value }) => [task_key, value])).toEqual([['a', '{"made":1}']])
  await world.crash()
  await world.clock.advance(5 * MINUTE_MS)
  await world.request('later', 'key:alone')
  await world.clock.advance(SECOND_MS)
  const read = (asset: string) =>
    world.workers.started.find(({ asset_key }) => asset_key === asset)?.payload.inputs['a']?.values
  expect(read('b')).toMatchObject([{ materialization_id: 'm1', ...inline('{"made":1}') }])
  expect(read('alone')).toMatchObject([{ materialization_id: 'm2', ...inline('{"made":2}') }])
  // The record of the attempt says what it was without repeating it, and nothing is kept for a run that is over.
  const { compactor } = world.orchestrator.loop
  expect([...compactor.state.hot(runValues).all()]).toEqual([])
  const { value, ...checksum } = inline('{"made":1}')
  expect(world.attempts(own, 'a')[0]?.output).toEqual(checksum)
  expect(await compactor.lookup(storedValues, 'a', '')).toMatchObject({ materialization_id: 'm2', value: '{"made":2}' })
  expect(JSON.stringify(world.attempts(own, 'a'))).not.toContain(value)
  expect(await world.problems()).toEqual([])
})

test('[D9] a worker may send less with its report the more partitions its asset has, so that all of them fit into one message', async () => {
  const world = await World.open()
  const keys = Array.from({ length: 1_000 }, (_, i) => `k${i}`)
  await world.define({ whole: [], parted: { partitions: { type: 'keys', keys } } })
  await world.request('r1', 'key:whole')
  await world.request('r2', 'key:parted', { partitions: ['k1'] })
  await world.clock.advance(SECOND_MS)
  const limits = world.workers.started.map(({ asset_key, payload }) => [asset_key, payload.inline_bytes])
  expect(limits).toEqual([
    ['whole', 4_096],
    ['parted', 1_048],
  ])
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

test('[K3] an attempt that needs a value whose bytes were removed fails with when and why, and what to do', async () => {
  const result = { outcome: 'SUCCEEDED' as const, materialization_id: 'm1', output: inline('7') }
  const world = await World.open({ script: ({ asset_key }) => (asset_key === 'a' ? { result } : {}) })
  await world.define({ a: [], reader: { inputs: { a: { asset_key: 'a' } } } })
  await world.request('first', 'key:a')
  await world.clock.advance(SECOND_MS)
  const row = await world.orchestrator.loop.compactor.lookup(storedValues, 'a', '')
  // Servo itself never removes the current value.
  const value = { event_id: row?.event_id ?? '', partition_keys: [''], materialized_at: toIso(row?.materialized_at ?? 0) }
  const removal = { removal_id: 'x1', asset_key: 'a', reason: 'purged' as const, removed_by: 'ada' }
  await world.orchestrator.submit([
    newEvent(DataRemoved, { ...removal, values: [{ ...value, materialization_id: 'm1', sha256: row?.sha256 }] }),
  ])
  const run = await world.request('second', 'key:reader')
  await world.clock.advance(SECOND_MS)
  expect(world.attempts(run, 'reader')).toMatchObject([
    {
      outcome: 'FAILED',
      error_message: expect.stringMatching(
        /^the value of a was removed at 2026-01-01T00:00:01.000Z: a user purged it\s+Materialize a again/,
      ),
    },
  ])
})
