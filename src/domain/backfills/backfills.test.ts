import { describe, expect, test } from 'vitest'
import { RunStory, Story } from '../../testing/histories/story.ts'
import { BackfillCancelRequested } from './backfill-cancel-requested.event.ts'
import { BackfillChunkPlanned } from './backfill-chunk-planned.event.ts'
import { backfillChunks } from './backfill-chunks.table.ts'
import { BackfillCreated } from './backfill-created.event.ts'
import { BackfillStateChanged } from './backfill-state-changed.event.ts'
import { type BackfillState, backfills } from './backfills.table.ts'

class BackfillStory extends Story {
  constructor(partitions = 4) {
    super()
    this.tell(BackfillCreated, {
      backfill_id: 'january',
      client_request_id: 'r1',
      asset_selection: ['orders'],
      partition_selector: { type: 'range', start: '2025-01-01', end: '2025-01-31' },
      total_partitions: partitions,
      chunk_size: 2,
      max_concurrent_runs: 1,
    })
    this.moves('PENDING', 'RUNNING', 2)
  }

  get backfill() {
    return this.row(backfills, 'january')
  }

  moves(from_state: BackfillState, to_state: BackfillState, state_version: number, planned_chunks?: number) {
    const counted = planned_chunks === undefined ? {} : { planned_chunks }
    return this.tell(BackfillStateChanged, { backfill_id: 'january', from_state, to_state, state_version, ...counted })
  }

  chunk(chunk_index: number) {
    const source = { type: 'backfill', backfill_id: 'january', chunk_id: `january:${chunk_index}`, chunk_index } as const
    const run = new RunStory(this, `january:chunk:${chunk_index}`, source)
    const planned = { backfill_id: 'january', chunk_index, partition_keys: ['x'], run_key: run.runKey, run_id: run.runId }
    const plan = () => this.tell(BackfillChunkPlanned, { ...planned, request_fingerprint: 'f' })
    return { run, plan, state: () => this.row(backfillChunks, 'january', chunk_index)?.state }
  }
}

describe('a chunk', () => {
  test('[A4] is what its run is, and is counted when that ends', () => {
    const story = new BackfillStory()
    const { run, plan, state } = story.chunk(0)
    plan()
    expect(state()).toBe('PLANNED')
    run.requested()
    run.planned({ orders: [] })
    run.dispatched('orders')
    expect(state()).toBe('RUNNING')
    run.succeeded('orders')
    expect(state()).toBe('SUCCEEDED')
    expect(story.backfill).toMatchObject({ planned_chunks: 1, succeeded_chunks: 1 })
  })

  test('[A4] that is heard of when its run is over, or even sealed, is over too', () => {
    const story = new BackfillStory()
    const [first, second] = [story.chunk(0), story.chunk(1)]
    for (const { run } of [first, second]) {
      run.requested()
      run.planned({})
    }
    first.plan()
    story.bench.seal()
    second.plan()
    expect([first.state(), second.state()]).toEqual(['SUCCEEDED', 'SUCCEEDED'])
    expect(story.backfill).toMatchObject({ planned_chunks: 2, succeeded_chunks: 2 })
  })

  test('[I18] planned twice is planned once', () => {
    const story = new BackfillStory()
    const { plan } = story.chunk(0)
    plan()
    expect(plan()).toEqual({ kind: 'duplicate' })
    expect(story.backfill?.planned_chunks).toBe(1)
  })

  test('that the backfill does not have is refused', () => {
    expect(new BackfillStory(4).chunk(2).plan()).toEqual({ kind: 'ignored', reason: 'no_such_chunk' })
  })
})

describe('a backfill', () => {
  test('[A4] changes state only from the version it has: of two changes at once the first counts', () => {
    const story = new BackfillStory()
    story.moves('RUNNING', 'PAUSED', 3)
    expect(story.moves('RUNNING', 'CANCELLED', 3)).toEqual({ kind: 'ignored', reason: 'stale_state_version' })
    expect(story.moves('PAUSED', 'SUCCEEDED', 4)).toEqual({ kind: 'ignored', reason: 'impossible_transition' })
    expect(story.backfill).toMatchObject({ state: 'PAUSED', state_version: 3 })
  })

  test('[I3] a change that arrives before the one it follows waits for it', () => {
    const story = new BackfillStory()
    expect(story.moves('PAUSED', 'RUNNING', 4)).toMatchObject({ kind: 'parked' })
    story.moves('RUNNING', 'PAUSED', 3)
    expect(story.backfill).toMatchObject({ state: 'RUNNING', state_version: 4 })
  })

  test('[A4] ends when all its chunks have: an end that comes too early waits for them', () => {
    const story = new BackfillStory()
    const { run, plan } = story.chunk(0)
    plan()
    run.requested()
    expect(story.moves('RUNNING', 'FAILED', 3, 1)).toMatchObject({ kind: 'parked' })
    run.planned({})
    expect(story.backfill).toMatchObject({ state: 'FAILED', state_version: 3, succeeded_chunks: 1 })
  })

  test('[A4] does not end by a decision that missed one of its chunks', () => {
    const story = new BackfillStory()
    story.chunk(0).plan()
    expect(story.moves('RUNNING', 'CANCELLED', 3, 0)).toEqual({ kind: 'ignored', reason: 'chunk_not_seen' })
    expect(story.backfill?.state).toBe('RUNNING')
  })

  test('is cancelled by request first; a request after its end is too late', () => {
    const story = new BackfillStory()
    story.tell(BackfillCancelRequested, { backfill_id: 'january', requested_by: 'ada' })
    expect(story.backfill).toMatchObject({ state: 'RUNNING' })
    expect(story.backfill?.cancel_requested_at).not.toBeNull()
    story.moves('RUNNING', 'CANCELLED', 3, 0)
    expect(story.backfill?.state).toBe('CANCELLED')
    const late = story.tell(BackfillCancelRequested, { backfill_id: 'january', requested_by: 'grace' })
    expect(late).toEqual({ kind: 'ignored', reason: 'backfill_over' })
  })
})
