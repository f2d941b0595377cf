import { expect, test } from 'vitest'
import { memoryNotifier } from '../../src/adapters/memory/notifier.ts'
import { memoryStore } from '../../src/adapters/memory/object-store.ts'
import { RunCancelRequested } from '../../src/domain/runs/run-cancel-requested.event.ts'
import { Ledger } from '../../src/engine/ledger/ledger.ts'
import { MINUTE_MS, SECOND_MS } from '../../src/lib/time.ts'
import { ulidSource } from '../../src/lib/ulid.ts'
import { newEvent } from '../../src/model/event.ts'
import type { Listener, Notifier } from '../../src/ports/notifier.ts'
import { countingStore } from '../../src/testing/counting-store.ts'
import { faultyStore } from '../../src/testing/faulty-store.ts'
import { seededBytes } from '../engine/workspace.ts'
import { failure, scope, World, type WorldOptions } from './world.ts'

/** Less than it takes until what has ended leaves memory. */
const RETRY_MS = 310 * SECOND_MS
const retry = { max_attempts: 3, backoff: 'fixed', initial_ms: RETRY_MS, max_ms: RETRY_MS, jitter: false } as const

/** Another process cancels the run, and tells nobody. */
async function cancelElsewhere(world: World, runId: string): Promise<string> {
  const ulid = ulidSource(() => world.clock.now(), seededBytes(99))
  const ledger = new Ledger({ store: world.store, scope, clock: world.clock, ulid, source: 'elsewhere' })
  const { segment } = await ledger.append([newEvent(RunCancelRequested, { run_id: runId, requested_by: 'somebody else' })])
  return segment
}

/** By a notifier that may miss something, unless told otherwise. */
async function waitingForRetry({ store = memoryStore(), ...given }: WorldOptions = { notifier: memoryNotifier() }) {
  const world = await World.open({
    store,
    ...given,
    script: ({ attempt }) => (attempt === 1 ? { result: failure() } : {}),
  })
  await world.define({ a: { retry } })
  const runId = await world.request('r')
  await world.clock.advance(SECOND_MS)
  expect(world.task(runId, 'a')).toMatchObject({ state: 'RETRY_WAIT', attempt: 1 })
  return { world, runId }
}

test('[O6] with a cancel 300 s old and unread in the ledger no retry fires', async () => {
  const { world, runId } = await waitingForRetry()
  await world.clock.advance(RETRY_MS - 302 * SECOND_MS)
  await cancelElsewhere(world, runId)
  await world.clock.advance(330 * SECOND_MS)
  expect(world.attempts(runId, 'a')).toHaveLength(1)
  expect(world.run(runId)?.state).toBe('CANCELLED')
  expect(await world.problems()).toEqual([])
})

test('[O6] a retry waits while the ledger cannot be read, and fires once it can', async () => {
  const inner = memoryStore()
  let isDown = false
  const store = faultyStore(inner, ({ method }) =>
    isDown && (method === 'list' || method === 'folders') ? { outcome: 'lost' } : undefined,
  )
  const { world, runId } = await waitingForRetry({ store, notifier: memoryNotifier() })
  isDown = true
  await world.clock.advance(RETRY_MS + 2 * MINUTE_MS)
  expect(world.attempts(runId, 'a')).toHaveLength(1)
  isDown = false
  await world.clock.advance(MINUTE_MS)
  expect(world.attempts(runId, 'a')).toHaveLength(2)
  expect(world.run(runId)?.state).toBe('SUCCEEDED')
})

test('[O7] while nothing is due nothing is asked of the store', async () => {
  const counting = countingStore(memoryStore())
  const { world } = await waitingForRetry({ store: counting })
  await world.orchestrator.publish()
  await world.clock.advance(SECOND_MS)
  counting.reset()
  await world.clock.advance(4 * MINUTE_MS)
  expect(counting.requests).toEqual([])
})

test('[V3] a segment that was heard of while the store was down is read once it is up again', async () => {
  let isDown = false
  const store = faultyStore(memoryStore(), ({ method, path }) =>
    isDown && method === 'get' && path.includes('/ledger/') ? { outcome: 'lost' } : undefined,
  )
  const { notifier, heard } = spoken()
  const { world, runId } = await waitingForRetry({ store, notifier })
  isDown = true
  heard([await cancelElsewhere(world, runId)])
  await world.clock.advance(5 * SECOND_MS)
  expect(world.run(runId)?.state).toBe('RUNNING')
  isDown = false
  await world.clock.advance(5 * SECOND_MS)
  expect(world.run(runId)?.state).toBe('CANCELLED')
})

test.each([
  [40, 1],
  [20, 2],
])(
  '[O6] a segment that was heard of %i s ago and cannot be read leaves a retry that is due at attempt %i',
  async (seconds, attempts) => {
    let isDown = false
    const store = faultyStore(memoryStore(), ({ method, path }) =>
      isDown && method === 'get' && path.includes('/ledger/') ? { outcome: 'lost' } : undefined,
    )
    const { notifier, heard } = spoken()
    const { world, runId } = await waitingForRetry({ store, notifier })
    await world.clock.advance(RETRY_MS - (seconds + 1) * SECOND_MS)
    isDown = true
    heard([await cancelElsewhere(world, 'run_of_somebody_else')])
    await world.clock.advance((seconds + 2) * SECOND_MS)
    expect(world.attempts(runId, 'a')).toHaveLength(attempts)
    isDown = false
    await world.clock.advance(MINUTE_MS)
    expect(world.run(runId)?.state).toBe('SUCCEEDED')
  },
)

/** A notifier that hears everything, and says what the test says. */
function spoken(): { notifier: Notifier; missed: () => void; heard: (segments: readonly string[]) => void } {
  let listener: Listener | undefined
  return {
    notifier: {
      announce: () => undefined,
      async listen(given) {
        listener = given
        return { missesNothing: true, close: () => undefined }
      },
    },
    missed: () => listener?.onMissed(),
    heard: (segments) => listener?.onSegments(segments),
  }
}

test('[O6][V3] what may have been missed is looked for until a look succeeds, and nothing is retried before', async () => {
  const { notifier, missed } = spoken()
  let failures = 0
  const store = faultyStore(memoryStore(), ({ method }) =>
    method === 'folders' && failures-- > 0 ? { outcome: 'lost' } : undefined,
  )
  const { world, runId } = await waitingForRetry({ store, notifier })
  await world.clock.advance(RETRY_MS - 10 * SECOND_MS)
  await cancelElsewhere(world, runId)
  failures = 3
  missed()
  await world.clock.advance(60 * SECOND_MS)
  expect(world.attempts(runId, 'a')).toHaveLength(1)
  expect(world.run(runId)?.state).toBe('CANCELLED')
})

test('[V3] what others wrote is published, though nothing else happens', async () => {
  const { notifier, heard } = spoken()
  const { world, runId } = await waitingForRetry({ notifier })
  await world.orchestrator.publish()
  heard([await cancelElsewhere(world, runId)])
  await world.clock.advance(10 * SECOND_MS)
  expect(world.orchestrator.loop.compactor.fold.unpublished).toBe(0)
})
