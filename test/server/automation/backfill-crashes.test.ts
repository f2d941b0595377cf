import { expect, test } from 'vitest'
import { memoryStore } from '../../../src/adapters/memory/object-store.ts'
import type { DispatchEnvelope } from '../../../src/contract/dispatch.ts'
import { BackfillCreated } from '../../../src/domain/backfills/backfill-created.event.ts'
import { BackfillStateChanged } from '../../../src/domain/backfills/backfill-state-changed.event.ts'
import { backfills } from '../../../src/domain/backfills/backfills.table.ts'
import { SECOND_MS } from '../../../src/lib/time.ts'
import { type NewEvent, newEvent } from '../../../src/model/event.ts'
import type { ObjectStore } from '../../../src/ports/object-store.ts'
import { runRequested } from '../../../src/server/workspace/requests.ts'
import { isFaultTried } from '../../tried-faults.ts'
import { failure, scope, World } from '../world.ts'

const daily = { type: 'daily', start: '2024-01-01', timezone: 'UTC' } as const
const secret = { id: 'secret-1', value: 'not a secret' }
const created = newEvent(BackfillCreated, {
  backfill_id: 'january',
  client_request_id: 'r1',
  request_fingerprint: 'f',
  partition_selector: { type: 'range', start: '2024-01-01', end: '2024-01-08' },
  as_of: '2024-06-01T00:00:00.000Z',
  stages: [{ assets: [{ asset_key: 'days', positions: [0, 8] }], partitions: daily, chunk_size: 2 }],
  max_concurrent_runs: 2,
  created_by: 'ada',
})
const NEVER = new Promise<never>(() => undefined)
/** More writes than a backfill of four chunks takes, with its tables. */
const WRITES = 60

/** A store that stops answering at one of its writes, when that is done or before it is begun: the process that waits for it is killed there. */
function stoppingAt(
  fault: number,
  isWritten: boolean,
): { store: ObjectStore; hasStopped: () => boolean; turn: (to: 'on' | 'off') => void } {
  const inner = memoryStore()
  let [writes, isOn] = [0, false]
  const create: ObjectStore['create'] = async (path, bytes) => {
    if (!isOn) return await inner.create(path, bytes)
    writes += 1
    if (writes < fault) return await inner.create(path, bytes)
    if (writes === fault && isWritten) await inner.create(path, bytes)
    return await NEVER
  }
  return {
    store: { ...inner, create },
    hasStopped: () => writes >= fault,
    turn: (to) => {
      isOn = to === 'on'
    },
  }
}

/** A backfill that is paused and resumed, one partition of which fails. Returns false if it was over before the fault. */
async function killedAt(fault: number, isWritten: boolean): Promise<boolean> {
  const { store, hasStopped, turn } = stoppingAt(fault, isWritten)
  const runsOf = new Map<string, Set<string>>()
  const script = ({ partition, run_id }: DispatchEnvelope) => {
    const key = partition?.key ?? ''
    runsOf.set(key, (runsOf.get(key) ?? new Set()).add(run_id))
    return { ms: 700, ...(key === '2024-01-03' && { result: failure({ retryable: false }) }) }
  }
  const requestRun = (request: Parameters<typeof runRequested>[2]) => runRequested(scope, secret, request)
  const world = await World.open({ store, script, options: { automation: true, requestRun } })
  const known = () => world.orchestrator.loop.compactor.state.hot(backfills).get('january')
  const tell = (event: NewEvent) => void world.orchestrator.submit([event]).catch(() => undefined)
  const change = (from: 'RUNNING' | 'PAUSED', to: 'RUNNING' | 'PAUSED', state_version: number) =>
    tell(newEvent(BackfillStateChanged, { backfill_id: 'january', from_state: from, to_state: to, state_version }))
  turn('on')
  void world.define({ days: { partitions: daily } }).catch(() => undefined)
  world.orchestrator.projectKnown()
  tell(created)
  await world.clock.advance(SECOND_MS)
  change('RUNNING', 'PAUSED', 3)
  await world.clock.advance(SECOND_MS)
  change('PAUSED', 'RUNNING', 4)
  await world.clock.advance(5 * SECOND_MS)
  const isKilled = hasStopped()
  turn('off')
  await world.crash(SECOND_MS)
  world.orchestrator.projectKnown()
  // Whoever asked repeats it: what got through is no other request.
  await world.define({ days: { partitions: daily } })
  tell(created)
  change('RUNNING', 'PAUSED', 3)
  change('PAUSED', 'RUNNING', 4)
  await world.clock.advance(60 * SECOND_MS)
  const where = `write ${fault}, ${isWritten ? 'done' : 'not begun'}`
  expect(known(), where).toMatchObject({
    state: 'FAILED',
    state_version: 5,
    planned_chunks: 4,
    active_chunks: [],
    succeeded_chunks: 3,
    failed_chunks: 1,
    succeeded_partitions: 7,
    failed_partitions: 1,
  })
  expect([...runsOf.keys()].sort(), where).toEqual(Array.from({ length: 8 }, (_, i) => `2024-01-0${i + 1}`))
  expect(
    [...runsOf.values()].filter(({ size }) => size !== 1),
    `${where}: each partition belongs to one run`,
  ).toEqual([])
  expect(await world.problems(), where).toEqual([])
  return isKilled
}

test('[I14] killed at any write, before or after it is done, a backfill plans each chunk once, and ends as it would have', async () => {
  let killed = 0
  for (let fault = 1; fault <= WRITES; fault++)
    for (const isWritten of [false, true])
      if ((fault === 2 || isFaultTried()) && (await killedAt(fault, isWritten))) killed += 1
  expect(killed, 'it was killed at least at its second write').toBeGreaterThan(0)
})
