import { describe, expect, test } from 'vitest'
import { runs } from '../../src/domain/runs/runs.table.ts'
import { MINUTE_MS, SECOND_MS } from '../../src/lib/time.ts'
import type { OrchestratorSettings } from '../../src/server/leader/settings.ts'
import { Remote } from './remote.ts'
import { type Graph, World, type WorldOptions } from './world.ts'

/** So many assets for each of these queues; `default` is that of this machine. */
function assetsOf(queues: Readonly<Record<string, number>>): Graph {
  const named = Object.entries(queues).flatMap(([queue, count]) =>
    Array.from({ length: count }, (_, i) => [`${queue}-${i}`, queue === 'default' ? {} : { queue }] as const),
  )
  return Object.fromEntries(named)
}

class Limited {
  readonly world: World
  readonly remote: Remote
  readonly #held: { settings: OrchestratorSettings }

  private constructor(world: World, held: { settings: OrchestratorSettings }) {
    this.world = world
    this.remote = new Remote(world)
    this.#held = held
  }

  static async open(settings: OrchestratorSettings, given: WorldOptions = {}): Promise<Limited> {
    const held = { settings }
    return new Limited(await World.open({ ...given, options: { settings: () => held.settings } }), held)
  }

  /** As if the config had been saved. */
  change(settings: OrchestratorSettings): void {
    this.#held.settings = settings
    this.world.orchestrator.settingsChanged()
  }

  /** How many tasks are with workers, by queue. */
  out(run: string): Record<string, number> {
    const counts: Record<string, number> = {}
    for (const [key, state] of Object.entries(this.world.states(run))) {
      const queue = key.split('-')[0] as string
      if (state === 'DISPATCHED' || state === 'RUNNING') counts[queue] = (counts[queue] ?? 0) + 1
    }
    return counts
  }

  total(run: string): number {
    return Object.values(this.out(run)).reduce((sum, count) => sum + count, 0)
  }
}

describe('a cap on all queues together', () => {
  test('[D1] of 2 lets 2 of 100 tasks on two remote queues out, and two at a time until all are done', async () => {
    const limited = await Limited.open({ concurrency: 2 })
    const { world, remote } = limited
    await world.define(assetsOf({ gpu: 50, cpu: 50 }))
    const run = await world.request('r1')
    await world.clock.advance(SECOND_MS)
    expect(limited.total(run)).toBe(2)
    let done = 0
    for (; done < 100; done++) {
      const work = await remote.take('w1')
      expect(limited.total(run)).toBeLessThanOrEqual(2)
      await remote.completed(work)
    }
    await world.clock.advance(SECOND_MS)
    expect(world.run(run)).toMatchObject({ state: 'SUCCEEDED', tasks_succeeded: 100 })
    expect(await world.problems()).toEqual([])
  })

  test('[D1] counts attempts on local and on remote workers', async () => {
    const limited = await Limited.open({ concurrency: 3 }, { capacity: 3, script: () => ({ ms: 10 * MINUTE_MS }) })
    const { world } = limited
    await world.define(assetsOf({ default: 2, gpu: 5 }))
    const run = await world.request('r1')
    await world.clock.advance(SECOND_MS)
    expect(limited.out(run)).toEqual({ default: 2, gpu: 1 })
  })

  test('[D1] leaves room on this machine only for what others do not take, and what waits beside our workers runs later', async () => {
    const limited = await Limited.open({ concurrency: 4 }, { capacity: 4, script: () => ({ ms: 10 }) })
    const { world, remote } = limited
    await world.define({
      ...assetsOf({ default: 400 }),
      'gpu-0': { queue: 'gpu', priority: 9 },
      'gpu-1': { queue: 'gpu', priority: 9 },
    })
    const run = await world.request('r1')
    const [first, second] = [await remote.take('w1'), await remote.take('w2')]
    await world.clock.advance(100)
    expect(world.workers.most, 'two are on remote workers').toBe(2)
    await remote.completed(first)
    await remote.completed(second)
    await world.clock.advance(MINUTE_MS)
    expect(world.workers.most).toBe(4)
    expect(world.run(run)?.state).toBe('SUCCEEDED')
  })

  test('[D1] does not count an attempt that waits behind busy workers: another queue has that room', async () => {
    const limited = await Limited.open({ concurrency: 5 }, { capacity: 4, script: () => ({ ms: 10 * MINUTE_MS }) })
    const { world } = limited
    await world.define({
      ...assetsOf({ default: 10 }),
      'gpu-0': { queue: 'gpu', priority: -1 },
      'gpu-1': { queue: 'gpu', priority: -1 },
    })
    const run = await world.request('r1')
    await world.clock.advance(SECOND_MS)
    expect(world.workers.most).toBe(4)
    expect(limited.out(run), 'one of five waits behind four workers').toEqual({ default: 5, gpu: 1 })
  })

  test('[D1] lets no attempt wait here while a worker is idle, for that worker would begin it and exceed the cap', async () => {
    const limited = await Limited.open({ concurrency: 3 }, { capacity: 4, script: () => ({ ms: 10 * MINUTE_MS }) })
    const { world } = limited
    await world.define({ ...assetsOf({ default: 10 }), 'gpu-0': { queue: 'gpu', priority: 9 } })
    const run = await world.request('r1')
    await world.clock.advance(SECOND_MS)
    expect(limited.out(run)).toEqual({ default: 2, gpu: 1 })
    expect(world.workers.most).toBe(2)
  })

  test('[D2] of 0, as before a project is loaded, lets nothing out that is not out already', async () => {
    const limited = await Limited.open({ concurrency: 1 }, { script: () => ({ ms: MINUTE_MS }) })
    const { world } = limited
    await world.define(assetsOf({ default: 3, gpu: 3 }))
    limited.change({ concurrency: 0 })
    await world.crash()
    const run = await world.request('r1')
    await world.clock.advance(SECOND_MS)
    expect(limited.total(run)).toBe(0)
    limited.change({})
    await world.clock.advance(1)
    expect(limited.total(run)).toBe(6)
  })

  test('[D2] that is raised counts at once, and one that is lowered ends nothing that has begun', async () => {
    const limited = await Limited.open({ concurrency: 2 })
    const { world, remote } = limited
    await world.define(assetsOf({ gpu: 10 }))
    const run = await world.request('r1')
    limited.change({ concurrency: 5 })
    await world.clock.advance(1)
    expect(limited.total(run)).toBe(5)
    limited.change({ concurrency: 1 })
    await world.clock.advance(1)
    expect(limited.total(run)).toBe(5)
    for (let done = 0; done < 5; done++) await remote.completed(await remote.take('w1'))
    await world.clock.advance(1)
    expect(limited.total(run)).toBe(1)
  })
})

describe('the limit of a queue', () => {
  test('[D1][D2] holds back its own tasks, and those of no other queue', async () => {
    const limited = await Limited.open({ queues: { gpu: { limit: 3 } } })
    const { world } = limited
    await world.define(assetsOf({ gpu: 20, cpu: 20 }))
    const run = await world.request('r1')
    await world.clock.advance(SECOND_MS)
    expect(limited.out(run)).toEqual({ gpu: 3, cpu: 20 })
  })

  test('is a thousand when the project says nothing', async () => {
    const limited = await Limited.open({})
    const { world } = limited
    await world.define(assetsOf({ gpu: 1_005 }))
    const run = await world.request('r1')
    await world.clock.advance(SECOND_MS)
    expect(limited.out(run)).toEqual({ gpu: 1_000 })
  })

  test('[D2] that is changed in the config counts at once', async () => {
    const limited = await Limited.open({ queues: { gpu: { limit: 1 } } })
    const { world } = limited
    await world.define(assetsOf({ gpu: 10 }))
    const run = await world.request('r1')
    limited.change({ queues: { gpu: { limit: 4 } } })
    await world.clock.advance(1)
    expect(limited.out(run)).toEqual({ gpu: 4 })
  })

  test('may be larger than the cap, which still counts', async () => {
    const limited = await Limited.open({ concurrency: 2, queues: { gpu: { limit: 50 } } })
    const { world } = limited
    await world.define(assetsOf({ gpu: 10 }))
    const run = await world.request('r1')
    await world.clock.advance(SECOND_MS)
    expect(limited.out(run)).toEqual({ gpu: 2 })
  })
})

describe('the limit of a pool', () => {
  const pooled = { pool: 'narrow' }

  test('[D1][D2] holds back its tasks whichever queues they go to, and no others', async () => {
    const limited = await Limited.open({}, { script: () => ({ ms: 10 * MINUTE_MS }) })
    const { world, remote } = limited
    await world.define(
      {
        'default-0': pooled,
        'default-1': [],
        'gpu-0': { ...pooled, queue: 'gpu' },
        'gpu-1': { queue: 'gpu' },
        'cpu-0': { ...pooled, queue: 'cpu' },
      },
      { narrow: 1 },
    )
    const run = await world.request('r1')
    await world.clock.advance(SECOND_MS)
    expect(world.states(run)).toEqual({
      'cpu-0': 'DISPATCHED',
      'default-0': 'READY',
      'default-1': 'RUNNING',
      'gpu-0': 'READY',
      'gpu-1': 'DISPATCHED',
    })
    await remote.completed(await remote.take('w1', { queues: ['cpu'] }))
    await world.clock.advance(SECOND_MS)
    expect(world.states(run)).toMatchObject({ 'cpu-0': 'SUCCEEDED', 'default-0': 'RUNNING', 'gpu-0': 'READY' })
  })

  test('[D2] that is changed counts at once, and ends nothing that has begun', async () => {
    const limited = await Limited.open({})
    const { world, remote } = limited
    const assets = Object.fromEntries(Array.from({ length: 6 }, (_, i) => [`gpu-${i}`, { ...pooled, queue: 'gpu' }]))
    await world.define(assets, { narrow: 1 })
    const run = await world.request('r1')
    await world.define(assets, { narrow: 3 })
    await world.clock.advance(1)
    expect(limited.total(run)).toBe(3)
    await world.define(assets, { narrow: 1 })
    await world.clock.advance(1)
    expect(limited.total(run)).toBe(3)
    for (let done = 0; done < 3; done++) await remote.completed(await remote.take('w1'))
    await world.clock.advance(1)
    expect(limited.total(run)).toBe(1)
    await world.define(assets, { narrow: null })
    await world.clock.advance(1)
    expect(limited.total(run), 'a pool without a limit').toBe(3)
  })
})

describe('patience that the project asks for', () => {
  const silent = async (heartbeat_timeout_sec: number) => {
    const world = await World.open()
    const remote = new Remote(world)
    await world.define({ a: { queue: 'gpu', heartbeat_timeout_sec } })
    const run = await world.request('r1')
    const work = await remote.take('w1')
    return { world, run, work }
  }

  test('with a silent worker is what its asset says, and its worker is told', async () => {
    const { world, run, work } = await silent(600)
    expect(work.payload.heartbeat_timeout_sec).toBe(600)
    await world.clock.advance(620 * SECOND_MS)
    expect(world.states(run)).toEqual({ a: 'RUNNING' })
    await world.clock.advance(20 * SECOND_MS)
    expect(world.attempts(run, 'a')[0]).toMatchObject({ outcome: 'FAILED', error_category: 'lost' })
  })

  test('may be short', async () => {
    const { world, run } = await silent(5)
    await world.clock.advance(41 * SECOND_MS)
    expect(world.attempts(run, 'a')[0]).toMatchObject({ outcome: 'FAILED', error_category: 'lost' })
  })

  test('[D4] with a queue that lost its work is what the config says, also when it is changed meanwhile', async () => {
    const held: { settings: OrchestratorSettings } = { settings: {} }
    const told: string[] = []
    const post = async (url: string) => void told.push(url)
    const world = await World.open({ options: { settings: () => held.settings, remote: { post } } })
    new Remote(world).pushTo({ gpu: { push: 'https://queue.example' } })
    await world.define({ a: { queue: 'gpu' } })
    await world.request('r1')
    await world.clock.advance(MINUTE_MS)
    expect(told).toHaveLength(1)
    held.settings = { timing: { stuck_dispatch_ms: 2 * MINUTE_MS } }
    world.orchestrator.settingsChanged()
    await world.clock.advance(MINUTE_MS + SECOND_MS)
    expect(told).toHaveLength(2)
    await world.clock.advance(2 * MINUTE_MS)
    expect(told).toHaveLength(3)
  })

  test('[C3] with workers of a cancelled run is what the config says', async () => {
    const world = await World.open({ options: { settings: () => ({ timing: { cancel_grace_ms: 60 * SECOND_MS } }) } })
    const remote = new Remote(world)
    await world.define({ a: { queue: 'gpu' } })
    const run = await world.request('r1')
    await remote.take('w1')
    await world.cancel(run)
    await world.clock.advance(50 * SECOND_MS)
    expect(world.run(run)?.state).toBe('RUNNING')
    await world.clock.advance(15 * SECOND_MS)
    expect(world.run(run)?.state).toBe('CANCELLED')
  })

  test('between two sweeps is what the config says', async () => {
    let shown = 0
    const reactors = [{ watches: runs, react: () => void shown++ }]
    const settings = () => ({ timing: { sweep_ms: 10 * SECOND_MS } })
    const world = await World.open({ options: { settings, reactors } })
    await world.define({ a: { queue: 'gpu' } })
    await world.request('r1')
    const before = shown
    await world.clock.advance(31 * SECOND_MS)
    expect(shown - before).toBe(3)
  })
})
