import { BackfillCancelRequested } from '../domain/backfills/backfill-cancel-requested.event.ts'
import { BackfillChunkPlanned } from '../domain/backfills/backfill-chunk-planned.event.ts'
import { BackfillCreated } from '../domain/backfills/backfill-created.event.ts'
import { BackfillStateChanged } from '../domain/backfills/backfill-state-changed.event.ts'
import type { BackfillState } from '../domain/backfills/backfills.table.ts'
import type { BackfillPlan } from './history-plan.ts'
import { runLife, SimulatedRun } from './history-runs.ts'
import { type Actor, pause, type World } from './history-world.ts'
import type { Writer } from './history-writers.ts'

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

  yield world.write(BackfillCreated, {
    backfill_id,
    client_request_id: `request-${index}`,
    asset_selection: ['asset0'],
    partition_selector: { type: 'range', start: '2025-01-01', end: '2025-01-31' },
    total_partitions: plan.chunks.length * CHUNK_SIZE,
    chunk_size: CHUNK_SIZE,
    max_concurrent_runs: 2,
  })
  world.backfills.push(backfill)
  if (plan.cancelAfter !== null) world.spawn(cancellation(world, backfill, plan.cancelAfter))
  yield world.write(BackfillStateChanged, move('RUNNING'))
  for (let round = 0; round < plan.pauses && !backfill.cancelled; round++) {
    yield world.write(BackfillStateChanged, move('PAUSED'))
    yield world.write(BackfillStateChanged, move('RUNNING'))
  }

  for (const [chunk_index, runPlan] of plan.chunks.entries()) {
    if (backfill.cancelled) break
    const chunk_id = `${backfill_id}:${chunk_index}`
    const run = new SimulatedRun(world, runPlan, `backfill:${backfill_id}:chunk:${chunk_index}`, { type: 'backfill', backfill_id, chunk_id, chunk_index })
    const segment = (writer: Writer) => [
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
    backfill.chunks.push(run)
    world.runs.push(run)
    world.spawn(runLife(run))
    yield segment(world.writer())
    if (plan.twice[chunk_index]) yield segment(world.writer())
  }

  if (!plan.ends) return
  while (backfill.chunks.some((run) => !run.isOver)) yield undefined
  const failed = backfill.chunks.some((run) => run.state !== 'SUCCEEDED')
  const end = move(backfill.cancelled ? 'CANCELLED' : failed ? 'FAILED' : 'SUCCEEDED')
  yield world.write(BackfillStateChanged, { ...end, planned_chunks: backfill.chunks.length })
}

function* cancellation(world: World, backfill: ExpectedBackfill, steps: number): Actor {
  yield* pause(steps)
  if (backfill.state === 'PENDING' || backfill.state === 'RUNNING' || backfill.state === 'PAUSED') backfill.cancelled = true
  yield world.write(BackfillCancelRequested, { backfill_id: backfill.id, requested_by: 'ada' })
}
