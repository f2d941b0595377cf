import assert from 'node:assert/strict'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { requestFingerprint, runIdFromRunKey } from '../../src/domain/runs/identity.ts'
import type { Envelope } from '../../src/model/envelope.ts'
import { deliveries, effort } from '../../src/testing/histories.ts'
import { Bench, foldAll } from '../../src/testing/history-fold.ts'

interface Request {
  readonly run_key: string
  readonly run_id: string
  readonly request_fingerprint: string
}

const requests = (events: readonly Envelope[]): Request[] =>
  events.filter((event) => event.event_type === 'RunRequested').map((event) => event.payload as unknown as Request)

describe('run keys', () => {
  test('[I11] [L2-INV-4] a run key makes at most one run, and every run has its key', () => {
    const property = fc.property(deliveries(), ({ events }) => {
      const { runs = [], run_key_index: index = [] } = foldAll(events)
      expect(index.map((row) => [row['run_key'], row['run_id'], row['request_fingerprint']]).sort()).toEqual(
        runs.map((run) => [run['run_key'], run['run_id'], run['request_fingerprint']]).sort(),
      )
      expect(new Set(runs.map((run) => run['run_id'])).size).toBe(runs.length)
    })
    fc.assert(property, effort)
  })

  test('[L2-INV-4] [L2-INV-5] the first request that counts makes the run; the same again is the same run, another is a conflict and no run', () => {
    const property = fc.property(deliveries(), ({ events }) => {
      const bench = new Bench()
      bench.fold(events, (event, verdict) => {
        if (event.event_type !== 'RunRequested') return
        const request = event.payload as unknown as Request
        const { runs = [] } = bench.rows()
        const made = runs.find((run) => run['run_key'] === request.run_key)
        if (verdict.kind === 'applied') assert.equal(made?.['row_version'] >= event.event_id, true)
        const isConflict = verdict.kind === 'ignored' && verdict.reason === 'run_key_conflict'
        if (made !== undefined) assert.equal(isConflict, made['request_fingerprint'] !== request.request_fingerprint)
      })
      const { runs = [], run_key_conflicts: conflicts = [] } = bench.rows()
      const other = requests(events).filter((request) => runs.some((run) => run['run_key'] === request.run_key && run['request_fingerprint'] !== request.request_fingerprint))
      const expected = new Set(other.map((request) => `${request.run_key} ${request.request_fingerprint}`))
      expect(new Set(conflicts.map((row) => `${row['run_key']} ${row['conflicting_fingerprint']}`))).toEqual(expected)
      for (const conflict of conflicts) {
        const run = runs.find((row) => row['run_key'] === conflict['run_key'])
        expect(conflict).toMatchObject({ existing_run_id: run?.['run_id'], existing_fingerprint: run?.['request_fingerprint'] })
      }
    })
    fc.assert(property, effort)
  })

  test('[L2-INV-9] the run id is a function of tenant, workspace, key and secret, and of each of them', () => {
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

  test('[L2-INV-4] the fingerprint does not depend on the order in which assets and partitions are named', () => {
    const names = fc.uniqueArray(fc.string({ minLength: 1 }), { minLength: 1 })
    const property = fc.property(names, names, fc.dictionary(fc.string(), fc.string()), (assets, partitions, labels) => {
      const asked = requestFingerprint({ asset_selection: assets, partition_selection: partitions, labels })
      const reversed = Object.fromEntries(Object.entries(labels).reverse())
      const again = { asset_selection: assets.toReversed(), partition_selection: partitions.toReversed(), labels: reversed }
      expect(requestFingerprint(again)).toBe(asked)
      expect(requestFingerprint({ asset_selection: assets, partition_selection: null, labels })).not.toBe(asked)
    })
    fc.assert(property, effort)
  })
})
