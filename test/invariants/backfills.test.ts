import assert from 'node:assert/strict'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type BackfillRow, backfills, isBackfillOver } from '../../src/domain/backfills/backfills.table.ts'
import { toMs } from '../../src/lib/time.ts'
import type { Envelope } from '../../src/model/envelope.ts'
import { unpackSpans } from '../../src/partitions/spans.ts'
import { Bench, foldAll, type Snapshot } from '../../src/testing/histories/fold.ts'
import { deliveries, effort, histories } from '../../src/testing/histories/histories.ts'
import { moves, withCopies } from '../../src/testing/histories/order.ts'

const chunksOf = (rows: Snapshot, backfillId: string) =>
  (rows['backfill_chunks'] ?? []).filter((row) => row['backfill_id'] === backfillId)

const membersOf = (positions: readonly number[]): number[] =>
  unpackSpans(positions).list.flatMap(({ from, to }) => Array.from({ length: to - from + 1 }, (_, i) => from + i))

describe('backfills', () => {
  test('[A4] a chunk ends as its run does, and the counters of its backfill are the counts of its chunks and partitions', () => {
    const property = fc.property(deliveries(), ({ events }) => {
      const bench = new Bench()
      bench.fold(events)
      const rows = bench.rows()
      const states = new Map((rows['runs'] ?? []).map((run) => [run['run_id'], run['state']]))
      for (const backfill of rows['backfills'] ?? []) {
        const chunks = chunksOf(rows, backfill['backfill_id'])
        for (const { outcome, run_id } of chunks) {
          const state = states.get(run_id)
          assert.equal(outcome ?? null, state === 'PENDING' || state === 'RUNNING' || state === undefined ? null : state)
        }
        const count = (wanted: string): number => chunks.filter(({ outcome }) => outcome === wanted).length
        assert.deepEqual(
          [backfill['planned_chunks'], backfill['succeeded_chunks'], backfill['failed_chunks'], backfill['cancelled_chunks']],
          [chunks.length, count('SUCCEEDED'), count('FAILED'), count('CANCELLED')],
        )
        assert.equal(backfill['active_chunks'].length, chunks.filter(({ outcome }) => outcome == null).length)
        for (const kind of ['succeeded', 'failed', 'skipped', 'cancelled']) {
          const counted = chunks.reduce((sum, chunk) => sum + (chunk[`${kind}_partitions`] ?? 0), 0)
          assert.equal(backfill[`${kind}_partitions`], counted, kind)
        }
      }
    })
    fc.assert(property, effort)
  })

  test('[I14] the chunks of a backfill are planned in order, and each has the partitions that follow those before it', () => {
    const property = fc.property(deliveries(), ({ events }) => {
      const rows = foldAll(events)
      for (const { backfill_id, stages } of rows['backfills'] ?? []) {
        const positions = chunksOf(rows, backfill_id).flatMap((chunk) => membersOf(chunk['positions']))
        assert.deepEqual(
          positions,
          positions.map((_, index) => index),
        )
        assert(positions.length <= stages[0].positions)
      }
    })
    fc.assert(property, effort)
  })

  test('[I18] a chunk planned again, by whatever controller, is no second chunk', () => {
    const reminted = (event: Envelope): boolean => event.event_type === 'BackfillChunkPlanned'
    const property = fc.property(deliveries(), moves, ({ events }, copied) => {
      expect(foldAll(withCopies(events, copied, reminted))).toEqual(foldAll(events))
    })
    fc.assert(property, effort)
  })

  test('[A4] a change of state counts only if it follows the version at hand; versions grow by one', () => {
    const property = fc.property(deliveries(), ({ events }) => {
      const bench = new Bench()
      const versions = new Map<string, number>()
      bench.fold(events, (event, verdict) => {
        if (event.event_type === 'BackfillStateChanged' && verdict.kind === 'applied') {
          const { backfill_id, state_version } = event.payload as { backfill_id: string; state_version: number }
          assert.equal(state_version, (versions.get(backfill_id) as number) + 1)
        }
        for (const backfill of bench.state.hot(backfills).all()) versions.set(backfill.backfill_id, backfill.state_version)
      })
    })
    fc.assert(property, effort)
  })

  test('[I10] a backfill that has ended stays as it is, and none ends while one of its chunks has not', () => {
    const property = fc.property(deliveries(), ({ events }) => {
      const bench = new Bench()
      const ended = new Map<string, BackfillRow>()
      bench.fold(events, () => {
        for (const backfill of bench.state.hot(backfills).all()) {
          const before = ended.get(backfill.backfill_id)
          if (before !== undefined) assert.deepEqual(backfill, before)
          if (!isBackfillOver(backfill.state)) continue
          ended.set(backfill.backfill_id, structuredClone(backfill))
          assert.deepEqual(backfill.active_chunks, [])
        }
      })
    })
    fc.assert(property, effort)
  })

  test('[A4] a backfill ends only by a decision that knew all its chunks', () => {
    const property = fc.property(deliveries(), ({ events }) => {
      for (const backfill of foldAll(events)['backfills'] ?? []) {
        if (backfill['finished_at'] === null) continue
        const { backfill_id, state: to_state, state_version } = backfill
        const decided = events
          .filter((event) => toMs(event.timestamp) === backfill['finished_at'])
          .map((event) => event.payload)
        expect(decided).toContainEqual(
          expect.objectContaining({ backfill_id, to_state, state_version, planned_chunks: backfill['planned_chunks'] }),
        )
      }
    })
    fc.assert(property, effort)
  })

  test('a backfill folded as it happened ends where the simulation ended', () => {
    const property = fc.property(histories(), ({ events, world }) => {
      const rows = foldAll(events)
      for (const expected of world.backfills) {
        const backfill = (rows['backfills'] ?? []).find((row) => row['backfill_id'] === expected.id)
        const chunks = chunksOf(rows, expected.id)
        expect(backfill).toMatchObject({ state: expected.state, state_version: expected.version })
        expect(backfill?.['cancel_requested_at'] !== null).toBe(expected.cancelled)
        expect(chunks.map((chunk) => [chunk['run_id'], chunk['outcome'] ?? null])).toEqual(
          expected.chunks.map((run) => [run.runId, run.isOver ? run.state : null]),
        )
      }
    })
    fc.assert(property, effort)
  })
})
