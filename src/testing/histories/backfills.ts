import { BackfillCancelRequested } from '../../domain/backfills/backfill-cancel-requested.event.ts'
import { BackfillChunkPlanned } from '../../domain/backfills/backfill-chunk-planned.event.ts'
import { BackfillCreated } from '../../domain/backfills/backfill-created.event.ts'
import { BackfillStateChanged } from '../../domain/backfills/backfill-state-changed.event.ts'
import type { BackfillState } from '../../domain/backfills/backfills.table.ts'
import { itemAt } from '../../lib/collections/item-at.ts'
import { toIso } from '../../lib/time.ts'
import type { Envelope } from '../../model/envelope.ts'
import type { BackfillPlan } from './plan.ts'
import { runLife, SimulatedRun } from './runs.ts'
import { type Actor, pause, type World } from './world.ts'

/** What should have become of a backfill. */
export interface ExpectedBackfill {
  readonly id: string
  state: BackfillState
  version: number
  cancelled: boolean
  readonly chunks: SimulatedRun[]
}

const CHUNK_SIZE = 2

/** A backfill: created, started, planned chunk by chunk, perhaps paused or cancelled, and ended when its runs have. */
export function* backfillLife(world: World, index: number, plan: BackfillPlan): Actor {
  const backfill: ExpectedBackfill = { id: `backfill-${index}`, state: 'PENDING', version: 1, cancelled: false, chunks: [] }
  const backfill_id = backfill.id
  const move = (to_state: BackfillState) => {
    const change = { backfill_id, from_state: backfill.state, to_state, state_version: backfill.version + 1, changed_by: 'ada' }
    backfill.state = to_state
    backfill.version += 1
    return change
  }

  const created = {
    backfill_id,
    client_request_id: `request-${index}`,
    request_fingerprint: 'f',
    partition_selector: { type: 'range', start: '2025-01-01', end: '2025-01-31' },
    as_of: toIso(world.now),
    stages: [
      {
        assets: [{ asset_key: 'asset0', positions: [0, plan.chunks.length * CHUNK_SIZE] }],
        partitions: { type: 'daily', start: '2024-01-10', timezone: 'UTC' },
        chunk_size: CHUNK_SIZE,
      },
    ],
    max_concurrent_runs: 2,
    created_by: 'ada',
    ...(index > 0 && { parent_backfill_id: 'backfill-0' }),
  }
  yield world.write(BackfillCreated, created)
  // The client did not get the answer, and asks again.
  if (world.roll(3) === 1) yield world.write(BackfillCreated, { ...created, backfill_id: `${backfill_id}-again` })
  world.backfills.push(backfill)
  if (plan.cancelAfter !== null) world.spawn(cancellation(world, backfill, plan.cancelAfter))
  yield world.write(BackfillStateChanged, move('RUNNING'))

  const made: SimulatedRun[] = []
  const runOf = (chunk_index: number): SimulatedRun => {
    const source = { type: 'backfill', backfill_id, chunk_id: `${backfill_id}:${chunk_index}`, chunk_index } as const
    const run_key = `backfill:${backfill_id}:chunk:${chunk_index}`
    made[chunk_index] ??= new SimulatedRun(world, itemAt(plan.chunks, chunk_index), run_key, source)
    return itemAt(made, chunk_index)
  }
  const segment = (chunk_index: number, state_version = backfill.version): Envelope[] => {
    const run = runOf(chunk_index)
    const asked = { run_key: run.runKey, run_id: run.runId, request_fingerprint: run.fingerprint }
    const writer = world.writer()
    return [writer.write(BackfillChunkPlanned, { backfill_id, chunk_index, state_version, run: asked }), run.request(writer)]
  }

  for (let round = 0; round < plan.pauses && !backfill.cancelled; round++) {
    yield world.write(BackfillStateChanged, move('PAUSED'))
    // A controller with an old view plans a chunk of a backfill that was paused meanwhile. It is planned again later.
    if (world.roll(2) === 1) yield segment(0, backfill.version - 1)
    // Whoever cancels it first keeps it from going on.
    if (!backfill.cancelled) yield world.write(BackfillStateChanged, move('RUNNING'))
  }

  while (backfill.chunks.length < plan.chunks.length && !backfill.cancelled) {
    const index = backfill.chunks.length
    const run = runOf(index)
    world.runs.push(run)
    world.spawn(runLife(run))
    backfill.chunks.push(run)
    yield segment(index)
    if (plan.twice[index]) yield segment(index)
  }

  if (!plan.ends) return
  while (backfill.chunks.some((run) => !run.isOver)) yield undefined
  // A controller with an old view plans one more chunk of a cancelled backfill: just before its end, or just after.
  const seen = backfill.chunks.length
  const raced = backfill.cancelled && seen < plan.chunks.length ? world.roll(3) : 0
  if (raced > 0) world.refused.add(runOf(seen).runKey)
  if (raced === 1) yield segment(seen)
  // One that has not heard of the last chunk decides on the end.
  if (backfill.cancelled && seen > 0 && world.roll(2) === 1) {
    const early = { backfill_id, from_state: backfill.state, to_state: 'CANCELLED', state_version: backfill.version + 1 }
    yield world.write(BackfillStateChanged, { ...early, planned_chunks: seen - 1 })
  }
  // A user pauses it at the same moment; of the two changes of one version the first counts, unless it is being cancelled.
  const pauseRace = world.roll(4)
  const paused = { backfill_id, from_state: backfill.state, to_state: 'PAUSED', state_version: backfill.version + 1 }
  const failed = backfill.chunks.some((run) => run.state !== 'SUCCEEDED')
  const isCancelled = backfill.cancelled
  const end = move(isCancelled ? 'CANCELLED' : failed ? 'FAILED' : 'SUCCEEDED')
  if (pauseRace === 1) {
    if (!isCancelled) backfill.state = 'PAUSED'
    yield world.write(BackfillStateChanged, paused)
  }
  yield world.write(BackfillStateChanged, { ...end, planned_chunks: backfill.chunks.length })
  if (pauseRace === 2) yield world.write(BackfillStateChanged, paused)
  if (raced === 2) yield segment(seen)
}

function* cancellation(world: World, backfill: ExpectedBackfill, steps: number): Actor {
  yield* pause(steps)
  if (backfill.state === 'PENDING' || backfill.state === 'RUNNING' || backfill.state === 'PAUSED') backfill.cancelled = true
  yield world.write(BackfillCancelRequested, { backfill_id: backfill.id, requested_by: 'ada' })
}
