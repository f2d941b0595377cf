import { expect, test } from 'vitest'
import { memoryStore } from '../../src/adapters/memory/object-store.ts'
import { tasks } from '../../src/domain/tasks/tasks.table.ts'
import { Paths } from '../../src/engine/paths.ts'
import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../../src/lib/time.ts'
import { reactor } from '../../src/server/leader/reactor.ts'
import { countingStore } from '../../src/testing/counting-store.ts'
import { failure, scope, World } from './world.ts'

const { ledger } = new Paths(scope)

test('[O3] a sweep shows the controllers every row again, and they decide nothing twice', async () => {
  const store = countingStore(memoryStore())
  const world = await World.open({
    store,
    capacity: 2,
    script: ({ asset_key }) => (asset_key === 'fails' ? { result: failure() } : { ms: 2 * HOUR_MS }),
  })
  const retry = { max_attempts: 2, initial_ms: HOUR_MS, max_ms: HOUR_MS, jitter: false }
  await world.define({ fails: { retry }, long: [], below: ['long'], held: [], elsewhere: { queue: 'gpu' } }, {})
  const run = await world.request('r1')
  await world.clock.advance(SECOND_MS)
  expect(Object.values(world.states(run)).sort()).toEqual(['BLOCKED', 'DISPATCHED', 'RETRY_WAIT', 'RUNNING', 'RUNNING'])
  store.reset()
  for (let sweep = 0; sweep < 3; sweep++) {
    world.orchestrator.loop.sweep()
    await world.clock.advance(SECOND_MS)
  }
  expect(store.requests.filter(({ path }) => path.startsWith(ledger))).toEqual([])
})

test('[V1] while a run is unfinished, every row is shown again every five minutes, though nothing happens', async () => {
  const shown: string[] = []
  const reactors = [reactor(tasks, ({ task_key }) => shown.push(task_key))]
  const world = await World.open({ script: () => ({ ms: HOUR_MS }), options: { reactors } })
  await world.define({ a: [], below: ['a'] })
  await world.request('r1')
  await world.clock.advance(4 * MINUTE_MS)
  for (let sweep = 0; sweep < 3; sweep++) {
    shown.length = 0
    await world.clock.advance(5 * MINUTE_MS)
    expect(shown.toSorted()).toEqual(['a', 'below'])
  }
})

test('[O4] a worker is asked once to stop, however often a sweep shows the cancelled run', async () => {
  const world = await World.open({ script: () => ({ ms: HOUR_MS, deaf: true }) })
  await world.define({ a: [] })
  const run = await world.request('r1')
  await world.clock.advance(SECOND_MS)
  const asked: string[] = []
  const { workers } = world
  const cancel = workers.cancel.bind(workers)
  workers.cancel = (attemptId, options) => {
    asked.push(attemptId)
    cancel(attemptId, options)
  }
  await world.cancel(run)
  for (let sweep = 0; sweep < 3; sweep++) {
    world.orchestrator.loop.sweep()
    await world.clock.advance(SECOND_MS)
  }
  expect(asked).toEqual([world.task(run, 'a')?.attempt_id])
})

test('[D4] a dispatch that no worker began before a crash is begun after it, as the same attempt', async () => {
  const world = await World.open({ capacity: 1, script: () => ({ ms: 10 * SECOND_MS }) })
  await world.define({ a: [], b: [] })
  const run = await world.request('r1')
  await world.clock.advance(SECOND_MS)
  const [waiting] = Object.entries(world.states(run)).flatMap(([key, state]) => (state === 'DISPATCHED' ? [key] : []))
  const { attempt_id } = world.task(run, waiting ?? '') ?? {}
  expect(attempt_id).toBeDefined()
  expect(world.workers.started.map((envelope) => envelope.attempt_id)).not.toContain(attempt_id)
  await world.crash(SECOND_MS)
  await world.clock.advance(60 * SECOND_MS)
  expect(world.workers.started.map((envelope) => envelope.attempt_id)).toContain(attempt_id)
  expect(world.attempts(run, waiting ?? '')).toMatchObject([{ attempt: 1, attempt_id, outcome: 'SUCCEEDED' }])
})
