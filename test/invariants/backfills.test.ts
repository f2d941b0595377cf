import assert from 'node:assert/strict'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { backfillChunks } from '../../src/domain/backfills/backfill-chunks.table.ts'
import { type BackfillRow, backfills, isBackfillOver } from '../../src/domain/backfills/backfills.table.ts'
import { chunkStateOf } from '../../src/domain/backfills/chunk-state.ts'
import { runs } from '../../src/domain/runs/runs.table.ts'
import { toMs } from '../../src/lib/time.ts'
import type { Envelope } from '../../src/model/envelope.ts'
import { Bench, foldAll } from '../../src/testing/histories/fold.ts'
import { deliveries, effort, histories } from '../../src/testing/histories/histories.ts'
import { moves, withCopies } from '../../src/testing/histories/order.ts'

describe('backfills', () => {
  test('[A4] a chunk is what its run is, and the counters of its backfill are the counts of its chunks', () => {
    const property = fc.property(deliveries(), ({ events }) => {
      const bench = new Bench()
      bench.fold(events, () => {
        for (const backfill of bench.state.hot(backfills).all()) {
          const chunks = [...bench.state.hot(backfillChunks).under(backfill.backfill_id)]
          for (const chunk of chunks) {
            const run = bench.state.hot(runs).get(chunk.run_id)
            assert.equal(chunk.state, run === undefined ? 'PLANNED' : chunkStateOf[run.state], chunk.chunk_id)
          }
          const count = (wanted: string): number => chunks.filter((chunk) => chunk.state === wanted).length
          assert.deepEqual(
            [backfill.planned_chunks, backfill.succeeded_chunks, backfill.failed_chunks, backfill.cancelled_chunks],
            [chunks.length, count('SUCCEEDED'), count('FAILED'), count('CANCELLED')],
          )
        }
      })
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
          for (const chunk of bench.state.hot(backfillChunks).under(backfill.backfill_id)) {
            assert(chunk.state !== 'PLANNED' && chunk.state !== 'RUNNING', `${chunk.chunk_id} is ${chunk.state}`)
          }
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
        const chunks = (rows['backfill_chunks'] ?? []).filter((row) => row['backfill_id'] === expected.id)
        expect(backfill).toMatchObject({ state: expected.state, state_version: expected.version })
        expect(backfill?.['cancel_requested_at'] !== null).toBe(expected.cancelled)
        expect(chunks.map((chunk) => [chunk['run_id'], chunk['state']])).toEqual(
          expected.chunks.map((run) => [run.runId, chunkStateOf[run.state]]),
        )
      }
    })
    fc.assert(property, effort)
  })
})
