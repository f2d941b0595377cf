import { describe, expect, test } from 'vitest'
import { canonicalJson } from '../../lib/json.ts'
import { unpackSpans } from '../../partitions/spans.ts'
import { RunStory, Story } from '../../testing/histories/story.ts'
import { requestFingerprint } from '../runs/run-ids.ts'
import { runs } from '../runs/runs.table.ts'
import { PlanCreated } from '../tasks/plan-created.event.ts'
import { backfillAssets } from './backfill-assets.table.ts'
import { BackfillCancelRequested } from './backfill-cancel-requested.event.ts'
import { BackfillChunkPlanned } from './backfill-chunk-planned.event.ts'
import { backfillChunks } from './backfill-chunks.table.ts'
import { BackfillCreated, type NewBackfill } from './backfill-created.event.ts'
import { BackfillStateChanged } from './backfill-state-changed.event.ts'
import { type BackfillState, backfills } from './backfills.table.ts'

const january: NewBackfill = {
  backfill_id: 'january',
  client_request_id: 'r1',
  request_fingerprint: 'f',
  partition_selector: { type: 'range', start: '2025-01-01', end: '2025-01-04' },
  as_of: '2025-01-15T10:00:00.000Z',
  stages: [
    {
      assets: [{ asset_key: 'orders', positions: [0, 4] }],
      partitions: { type: 'daily', start: '2025-01-01', timezone: 'UTC' },
      chunk_size: 2,
    },
  ],
  max_concurrent_runs: 1,
  created_by: 'ada',
}

class BackfillStory extends Story {
  constructor(more: Partial<NewBackfill> = {}) {
    super()
    this.tell(BackfillCreated, { ...january, ...more })
    this.moves('PENDING', 'RUNNING', 2)
  }

  get backfill() {
    return this.row(backfills, 'january')
  }

  get orders() {
    return this.row(backfillAssets, 'january', 'orders')
  }

  moves(from_state: BackfillState, to_state: BackfillState, state_version: number, planned_chunks?: number) {
    const counted = planned_chunks === undefined ? {} : { planned_chunks }
    return this.tell(BackfillStateChanged, { backfill_id: 'january', from_state, to_state, state_version, ...counted })
  }

  cancels() {
    return this.tell(BackfillCancelRequested, { backfill_id: 'january', requested_by: 'ada' })
  }

  chunk(chunk_index: number) {
    const source = { type: 'backfill', backfill_id: 'january', chunk_id: `january:${chunk_index}`, chunk_index } as const
    const run = new RunStory(this, `january:chunk:${chunk_index}`, source)
    const request_fingerprint = requestFingerprint({ asset_selection: ['orders'], partition_selection: null })
    const asked = { run_key: run.runKey, run_id: run.runId, request_fingerprint }
    const plan = (state_version = 2) =>
      this.tell(BackfillChunkPlanned, { backfill_id: 'january', chunk_index, state_version, run: asked })
    const outcome = () => this.row(backfillChunks, 'january', chunk_index)?.outcome
    /** Planned, with a task for each of its days. */
    const begin = () => {
      plan()
      run.requested()
      const days = [2 * chunk_index + 1, 2 * chunk_index + 2].map((day) => `2025-01-0${day}`)
      const tasks = days.map((day) => ({ task_key: day, asset_key: 'orders', partition_key: day }))
      this.tell(PlanCreated, { run_id: run.runId, plan_id: 'plan', part: 0, parts: 1, tasks })
      return days
    }
    /** Begun, and every day of it ended. */
    const end = (failing: readonly string[] = []) => {
      for (const day of begin()) {
        run.dispatched(day)
        if (failing.includes(day)) run.gaveUp(day)
        else run.succeeded(day)
      }
    }
    return { run, plan, outcome, begin, end }
  }
}

const listed = (positions: readonly number[] | undefined) => unpackSpans(positions ?? []).list

describe('a backfill', () => {
  test('[A84] of a million partitions is recorded in less than a kilobyte', () => {
    const minutes = { type: 'minutely', start: '2023-01-01T00:00', timezone: 'UTC' } as const
    const stages = [{ assets: [{ asset_key: 'minutes', positions: [0, 1_000_000] }], partitions: minutes, chunk_size: 1_000 }]
    const range = { type: 'range', start: '2023-01-01T00:00', end: '2024-11-25T10:39' } as const
    const story = new Story()
    const event = story.write(BackfillCreated, { ...january, partition_selector: range, stages })
    expect(Buffer.byteLength(canonicalJson(event))).toBeLessThan(1_024)
    story.hear(event)
    expect(story.row(backfills, 'january')).toMatchObject({ total_partitions: 1_000_000, total_chunks: 1_000 })
  })

  test('[A85] is made once for each request, for ever; another request under the same id makes nothing', () => {
    const story = new BackfillStory()
    const again = () => story.tell(BackfillCreated, { ...january, backfill_id: 'second' })
    expect(again()).toEqual({ kind: 'duplicate' })
    story.pass(400 * 24 * 3_600_000)
    story.bench.seal()
    expect(again()).toEqual({ kind: 'duplicate' })
    const other = story.tell(BackfillCreated, { ...january, backfill_id: 'third', request_fingerprint: 'g' })
    expect(other).toEqual({ kind: 'ignored', reason: 'request_reused' })
    expect(story.rows(backfills).map(({ backfill_id }) => backfill_id)).toEqual(['january'])
  })

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
    const story = new BackfillStory({ stop_after_failures: 1 })
    const chunk = story.chunk(0)
    chunk.begin()
    expect(story.moves('RUNNING', 'FAILED', 3, 1)).toMatchObject({ kind: 'parked' })
    for (const day of ['2025-01-01', '2025-01-02']) {
      chunk.run.dispatched(day)
      chunk.run.gaveUp(day)
    }
    expect(story.backfill).toMatchObject({ state: 'FAILED', state_version: 3, failed_chunks: 1 })
  })

  test('[A80] does not succeed with chunks that are not planned, or that failed, and does not fail when all succeeded', () => {
    const story = new BackfillStory()
    story.chunk(0).end()
    expect(story.moves('RUNNING', 'SUCCEEDED', 3, 1)).toEqual({ kind: 'ignored', reason: 'chunks_unplanned' })
    expect(story.moves('RUNNING', 'FAILED', 3, 1)).toEqual({ kind: 'ignored', reason: 'chunks_unplanned' })
    const failing = new BackfillStory()
    for (const index of [0, 1]) failing.chunk(index).end(['2025-01-03'])
    expect(failing.moves('RUNNING', 'SUCCEEDED', 3, 2)).toEqual({ kind: 'ignored', reason: 'chunks_failed' })
    story.chunk(1).end()
    expect(story.moves('RUNNING', 'FAILED', 3, 2)).toEqual({ kind: 'ignored', reason: 'no_chunk_failed' })
    expect([failing.moves('RUNNING', 'FAILED', 3, 2), story.moves('RUNNING', 'SUCCEEDED', 3, 2)]).toEqual([
      { kind: 'applied' },
      { kind: 'applied' },
    ])
  })

  test('[A4] does not end by a decision that missed one of its chunks', () => {
    const story = new BackfillStory()
    story.chunk(0).plan()
    story.cancels()
    expect(story.moves('RUNNING', 'CANCELLED', 3, 0)).toEqual({ kind: 'ignored', reason: 'chunk_not_seen' })
    expect(story.backfill?.state).toBe('RUNNING')
  })

  test('is cancelled by request first; a request after its end is too late', () => {
    const story = new BackfillStory()
    expect(story.moves('RUNNING', 'CANCELLED', 3, 0)).toMatchObject({ kind: 'parked' })
    story.cancels()
    expect(story.backfill).toMatchObject({ state: 'CANCELLED', cancel_requested_by: 'ada', cancel_runs: false })
    expect(story.cancels()).toEqual({ kind: 'ignored', reason: 'backfill_over' })
  })

  test('[A90] is cancelled once; a later request counts if it asks for its runs too, and changes nothing else', () => {
    const story = new BackfillStory()
    const cancel = (requested_by: string, cancel_runs: boolean) =>
      story.tell(BackfillCancelRequested, { backfill_id: 'january', requested_by, cancel_runs })
    expect([cancel('ada', false), cancel('bob', true), cancel('eve', true), cancel('eve', false)]).toEqual([
      { kind: 'applied' },
      { kind: 'applied' },
      { kind: 'duplicate' },
      { kind: 'duplicate' },
    ])
    expect(story.backfill).toMatchObject({ cancel_requested_by: 'ada', cancel_runs: true })
    expect(story.backfill?.cancel_requests?.map(({ cancel_runs }) => cancel_runs)).toEqual([false, true])
  })

  test('[A89] succeeds with partitions that were skipped because another run was making what they need', () => {
    const story = new BackfillStory()
    story.chunk(0).end()
    const overlapped = [{ asset_key: 'orders', positions: [2, 2] }]
    story.tell(BackfillChunkPlanned, { backfill_id: 'january', chunk_index: 1, state_version: 2, overlapped })
    expect(story.backfill).toMatchObject({ skipped_chunks: 1, skipped_partitions: 2 })
    expect(story.orders).toMatchObject({ overlapped: { positions: [2, 2], keys: [] }, skipped: { positions: [], keys: [] } })
    expect(story.moves('RUNNING', 'FAILED', 3, 2)).toEqual({ kind: 'ignored', reason: 'no_chunk_failed' })
    expect(story.moves('RUNNING', 'SUCCEEDED', 3, 2)).toEqual({ kind: 'applied' })
  })

  test('[A80] that is being cancelled neither pauses nor plans a chunk', () => {
    const story = new BackfillStory()
    story.cancels()
    expect(story.cancels()).toEqual({ kind: 'duplicate' })
    expect(story.moves('RUNNING', 'PAUSED', 3)).toEqual({ kind: 'ignored', reason: 'cancel_requested' })
    expect(story.chunk(0).plan()).toEqual({ kind: 'ignored', reason: 'cancel_requested' })
  })
})

describe('a chunk', () => {
  test('[A4] ends as its run does, and is counted then, with what became of each of its partitions', () => {
    const story = new BackfillStory()
    const [first, second] = [story.chunk(0), story.chunk(1)]
    first.end(['2025-01-02'])
    expect(first.outcome()).toBe('FAILED')
    second.end()
    expect(second.outcome()).toBe('SUCCEEDED')
    expect(story.backfill).toMatchObject({ planned_chunks: 2, succeeded_chunks: 1, failed_chunks: 1, active_chunks: [] })
    expect(story.orders).toMatchObject({ succeeded_partitions: 3, failed_partitions: 1, skipped_partitions: 0 })
    expect(story.orders?.failed).toEqual({ positions: [], keys: ['2025-01-02'] })
  })

  test('[A81] has its partitions by its number, oldest first or newest first, and leaves memory when it has ended', () => {
    const story = new BackfillStory()
    story.chunk(0).end()
    expect(listed(story.row(backfillChunks, 'january', 0)?.positions ?? [])).toEqual([{ from: 0, to: 1 }])
    const reversed = new BackfillStory({ newest_first: true })
    reversed.chunk(0).plan()
    expect(listed(reversed.row(backfillChunks, 'january', 0)?.positions ?? [])).toEqual([{ from: 2, to: 3 }])
    story.bench.seal()
    expect(story.backfill).toMatchObject({ planned_chunks: 1, active_chunks: [] })
    expect(story.row(backfillChunks, 'january', 0)?.outcome).toBe('SUCCEEDED')
  })

  test.each([1, 2, 3, 5])(
    '[I14] newest first, chunks of %i have each partition once, also the last and shorter one',
    (chunk_size) => {
      const [stage] = january.stages
      const assets = [{ asset_key: 'orders', positions: [0, 3, 2, 4] }]
      const story = new BackfillStory({ newest_first: true, stages: [{ ...stage, assets, chunk_size } as never] })
      const chunks = Array.from({ length: story.backfill?.total_chunks ?? 0 }, (_, index) => {
        story.chunk(index).plan()
        return listed(story.row(backfillChunks, 'january', index)?.positions ?? []).flatMap(({ from, to }) =>
          Array.from({ length: to - from + 1 }, (_, i) => from + i),
        )
      })
      expect(chunks.toReversed().flat()).toEqual([0, 1, 2, 5, 6, 7, 8])
      expect(chunks.slice(0, -1).every((chunk) => chunk.length === chunk_size)).toBe(true)
    },
  )

  test('[I18] planned twice is planned once', () => {
    const story = new BackfillStory()
    const { plan } = story.chunk(0)
    plan()
    expect(plan()).toEqual({ kind: 'duplicate' })
    expect(story.backfill?.planned_chunks).toBe(1)
  })

  test('that the backfill does not have is refused; one that comes before its turn waits', () => {
    const story = new BackfillStory()
    expect(story.chunk(2).plan()).toEqual({ kind: 'ignored', reason: 'no_such_chunk' })
    expect(story.chunk(1).plan()).toMatchObject({ kind: 'parked' })
    story.chunk(0).plan()
    expect(story.backfill?.planned_chunks).toBe(2)
  })

  test('[A4] that was refused makes no run: neither while the backfill is paused, nor after its end', () => {
    const story = new BackfillStory()
    story.moves('RUNNING', 'PAUSED', 3)
    const { plan, run } = story.chunk(0)
    expect(plan()).toEqual({ kind: 'ignored', reason: 'stale_state_version' })
    expect(plan(3)).toEqual({ kind: 'ignored', reason: 'backfill_paused' })
    expect(run.requested()).toMatchObject({ kind: 'parked' })
    expect(story.rows(runs)).toEqual([])
    story.cancels()
    story.moves('PAUSED', 'CANCELLED', 4, 0)
    expect(run.requested()).toEqual({ kind: 'ignored', reason: 'backfill_over' })
    expect(story.rows(runs)).toEqual([])
  })

  test('[A4] runs what it was planned with, and nothing else under its key', () => {
    const story = new BackfillStory()
    const { plan, run } = story.chunk(0)
    plan()
    expect(run.requested(['others'])).toEqual({ kind: 'ignored', reason: 'chunk_not_planned' })
    expect(run.requested()).toEqual({ kind: 'applied' })
  })

  test('without anything left to run is over at once, and skipped', () => {
    const story = new BackfillStory()
    const skipped = [{ asset_key: 'orders', positions: [0, 2] }]
    story.tell(BackfillChunkPlanned, { backfill_id: 'january', chunk_index: 0, state_version: 2, skipped })
    expect(story.chunk(0).outcome()).toBe('SKIPPED')
    expect(story.backfill).toMatchObject({ skipped_chunks: 1, skipped_partitions: 2, active_chunks: [] })
  })

  test('whose run cannot be planned has failed with all its partitions', () => {
    const story = new BackfillStory()
    const { plan, run } = story.chunk(0)
    plan()
    run.requested()
    story.tell(PlanCreated, { run_id: run.runId, plan_id: 'plan', part: 0, parts: 1, tasks: [], error: 'a cycle' })
    expect(story.backfill).toMatchObject({ failed_chunks: 1, failed_partitions: 2 })
    expect(story.orders?.failed).toEqual({ positions: [0, 2], keys: [] })
  })
})
