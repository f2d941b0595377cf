import { BackfillCancelRequested } from '../../domain/backfills/backfill-cancel-requested.event.ts'
import { BackfillChunkPlanned } from '../../domain/backfills/backfill-chunk-planned.event.ts'
import { BackfillCreated } from '../../domain/backfills/backfill-created.event.ts'
import { BackfillStateChanged } from '../../domain/backfills/backfill-state-changed.event.ts'
import type { BackfillState } from '../../domain/backfills/backfills.table.ts'
import { itemAt } from '../../lib/collections/item-at.ts'
import type { BackfillPlan } from './plan.ts'
import { runLife, SimulatedRun } from './runs.ts'
import { type Actor, pause, type World } from './world.ts'
import type { SimulatedWriter } from './writers.ts'

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
    asset_selection: ['asset0'],
    partition_selector: { type: 'range', start: '2025-01-01', end: '2025-01-31' },
    total_partitions: plan.chunks.length * CHUNK_SIZE,
    chunk_size: CHUNK_SIZE,
    max_concurrent_runs: 2,
    ...(index > 0 && { parent_backfill_id: 'backfill-0' }),
  }
  yield world.write(BackfillCreated, created)
  // The client did not get the answer, and asks again.
  if (world.roll(3) === 1) yield world.write(BackfillCreated, { ...created, backfill_id: `${backfill_id}-again` })
  world.backfills.push(backfill)
  if (plan.cancelAfter !== null) world.spawn(cancellation(world, backfill, plan.cancelAfter))
  yield world.write(BackfillStateChanged, move('RUNNING'))
  for (let round = 0; round < plan.pauses && !backfill.cancelled; round++) {
    yield world.write(BackfillStateChanged, move('PAUSED'))
    yield world.write(BackfillStateChanged, move('RUNNING'))
  }

  const planChunk = () => {
    const chunk_index = backfill.chunks.length
    const source = { type: 'backfill', backfill_id, chunk_id: `${backfill_id}:${chunk_index}`, chunk_index } as const
    const run = new SimulatedRun(
      world,
      itemAt(plan.chunks, chunk_index),
      `backfill:${backfill_id}:chunk:${chunk_index}`,
      source,
    )
    world.runs.push(run)
    world.spawn(runLife(run))
    const segment = (writer: SimulatedWriter) => [
      writer.write(BackfillChunkPlanned, {
        backfill_id,
        chunk_index,
        partition_keys: [`p${chunk_index}a`, `p${chunk_index}b`],
        run_key: run.runKey,
        run_id: run.runId,
        request_fingerprint: run.fingerprint,
      }),
      run.request(writer),
    ]
    return { run, segment }
  }

  while (backfill.chunks.length < plan.chunks.length && !backfill.cancelled) {
    const twice = plan.twice[backfill.chunks.length]
    const { run, segment } = planChunk()
    backfill.chunks.push(run)
    yield segment(world.writer())
    if (twice) yield segment(world.writer())
  }

  if (!plan.ends) return
  const allRunsOver = function* (): Actor {
    while (backfill.chunks.some((run) => !run.isOver)) yield undefined
  }
  yield* allRunsOver()
  // A controller with an old view plans one more chunk of a cancelled backfill: just before its end, or just after.
  const raced = backfill.cancelled && backfill.chunks.length < plan.chunks.length ? world.roll(3) : 0
  const seen = backfill.chunks.length
  if (raced === 1) {
    const { run, segment } = planChunk()
    backfill.chunks.push(run)
    yield segment(world.writer())
    const early = { backfill_id, from_state: backfill.state, to_state: 'CANCELLED', state_version: backfill.version + 1 }
    yield world.write(BackfillStateChanged, { ...early, planned_chunks: seen })
    yield* allRunsOver()
  }
  // A user pauses it at the same moment; of the two changes of one version the first counts.
  const pauseRace = world.roll(4)
  const paused = { backfill_id, from_state: backfill.state, to_state: 'PAUSED', state_version: backfill.version + 1 }
  const failed = backfill.chunks.some((run) => run.state !== 'SUCCEEDED')
  const end = move(backfill.cancelled ? 'CANCELLED' : failed ? 'FAILED' : 'SUCCEEDED')
  if (pauseRace === 1) {
    backfill.state = 'PAUSED'
    yield world.write(BackfillStateChanged, paused)
  }
  yield world.write(BackfillStateChanged, { ...end, planned_chunks: backfill.chunks.length })
  if (pauseRace === 2) yield world.write(BackfillStateChanged, paused)
  if (raced === 2) {
    const { run, segment } = planChunk()
    if (backfill.state === 'PAUSED') backfill.chunks.push(run)
    yield segment(world.writer())
  }
}

function* cancellation(world: World, backfill: ExpectedBackfill, steps: number): Actor {
  yield* pause(steps)
  if (backfill.state === 'PENDING' || backfill.state === 'RUNNING' || backfill.state === 'PAUSED') backfill.cancelled = true
  yield world.write(BackfillCancelRequested, { backfill_id: backfill.id, requested_by: 'ada' })
}
