import assert from 'node:assert/strict'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { requestFingerprint, runIdFromRunKey } from '../../src/domain/runs/run-ids.ts'
import { runs } from '../../src/domain/runs/runs.table.ts'
import type { Envelope } from '../../src/model/envelope.ts'
import { Bench, foldAll, type Snapshot } from '../../src/testing/histories/fold.ts'
import { deliveries, effort } from '../../src/testing/histories/histories.ts'

interface Request {
  readonly run_key: string
  readonly run_id: string
  readonly request_fingerprint: string
  readonly trigger_source_ref: { readonly type: string; readonly eval_id?: string }
}

/** Requests that count: all but those of evaluations that were not accepted, or never heard of, and of chunks that were not planned with them. */
function requests(
  events: readonly Envelope[],
  { sensor_evals: evals = [], backfill_chunks: chunks = [] }: Snapshot,
): Request[] {
  const accepted = new Set(evals.filter((row) => row['accepted']).map((row) => row['eval_id']))
  const planned = new Set(chunks.map((row) => `${row['run_key']} ${row['request_fingerprint']}`))
  return events
    .filter((event) => event.event_type === 'RunRequested')
    .map((event) => event.payload as unknown as Request)
    .filter(({ trigger_source_ref: source }) => source.type !== 'sensor' || accepted.has(source.eval_id))
    .filter(
      ({ trigger_source_ref: source, run_key, request_fingerprint }) =>
        source.type !== 'backfill' || planned.has(`${run_key} ${request_fingerprint}`),
    )
}

describe('run keys', () => {
  test('[T1][I11] a run key makes at most one run, and every run has its key', () => {
    const property = fc.property(deliveries(), ({ events }) => {
      const { runs: made = [], run_key_index: index = [] } = foldAll(events)
      expect(index.map((row) => [row['run_key'], row['run_id'], row['request_fingerprint']]).sort()).toEqual(
        made.map((run) => [run['run_key'], run['run_id'], run['request_fingerprint']]).sort(),
      )
      expect(new Set(made.map((run) => run['run_id'])).size).toBe(made.length)
    })
    fc.assert(property, effort)
  })

  test('[T1] the first request that counts makes the run; the same again is the same run, another is a conflict and no run', () => {
    const property = fc.property(deliveries(), ({ events }) => {
      const bench = new Bench()
      bench.fold(events, (event, verdict) => {
        if (event.event_type !== 'RunRequested' || verdict.kind === 'parked') return
        const request = event.payload as unknown as Request
        const made = bench.state.hot(runs).get(request.run_id)
        const isConflict = verdict.kind === 'ignored' && verdict.reason === 'run_key_conflict'
        if (verdict.kind === 'ignored' && !isConflict) return
        assert.equal(isConflict, made?.request_fingerprint !== request.request_fingerprint, request.run_key)
      })
      const rows = bench.rows()
      const { runs: made = [], run_key_conflicts: conflicts = [] } = rows
      const first = new Map(made.map((run) => [run['run_key'], run['request_fingerprint']]))
      const others = requests(events, rows).filter((request) => request.request_fingerprint !== first.get(request.run_key))
      const expected = new Set(others.map((request) => `${request.run_key} ${request.request_fingerprint}`))
      expect(new Set(conflicts.map((row) => `${row['run_key']} ${row['conflicting_fingerprint']}`))).toEqual(expected)
      for (const conflict of conflicts) {
        const run = made.find((row) => row['run_key'] === conflict['run_key'])
        expect(conflict).toMatchObject({ existing_run_id: run?.['run_id'], existing_fingerprint: run?.['request_fingerprint'] })
      }
    })
    fc.assert(property, effort)
  })

  test('[T2] the run id is a function of tenant, workspace, key and secret, and of each of them', () => {
    const text = fc.string({ minLength: 1 })
    const property = fc.property(text, text, text, text, (tenant, workspace, key, value) => {
      const id = runIdFromRunKey(tenant, workspace, key, { id: 's1', value })
      expect(id).toMatch(/^run_[a-z2-7]{26}$/)
      expect(runIdFromRunKey(tenant, workspace, key, { id: 'another name', value })).toBe(id)
      for (const other of [
        runIdFromRunKey(`${tenant}x`, workspace, key, { id: 's1', value }),
        runIdFromRunKey(tenant, `${workspace}x`, key, { id: 's1', value }),
        runIdFromRunKey(tenant, workspace, `${key}x`, { id: 's1', value }),
        runIdFromRunKey(tenant, workspace, key, { id: 's1', value: `${value}x` }),
      ]) {
        expect(other).not.toBe(id)
      }
    })
    fc.assert(property, effort)
  })

  test('[T1] the fingerprint does not depend on the order in which assets and partitions are named', () => {
    // Nobody may use this key: many a reader of JSON drops it, or worse.
    const labelled = fc.dictionary(
      fc.string().filter((key) => key !== '__proto__'),
      fc.string(),
    )
    const names = fc.uniqueArray(fc.string({ minLength: 1 }), { minLength: 1 })
    const property = fc.property(names, names, labelled, (assets, partitions, labels) => {
      const asked = requestFingerprint({ asset_selection: assets, partition_selection: partitions, labels })
      const reversed = Object.fromEntries(Object.entries(labels).reverse())
      const again = { asset_selection: assets.toReversed(), partition_selection: partitions.toReversed(), labels: reversed }
      expect(requestFingerprint(again)).toBe(asked)
      expect(requestFingerprint({ asset_selection: assets, partition_selection: null, labels })).not.toBe(asked)
    })
    fc.assert(property, effort)
  })
})
