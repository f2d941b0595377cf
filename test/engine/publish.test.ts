import { describe, expect, test } from 'vitest'
import { partitionStatus } from '../../src/domain/partitions/partition-status.table.ts'
import { reportFact, runFacts, wipeFact } from '../../src/testing/facts.ts'
import { Gate, interceptedStore } from './intercepted-store.ts'
import { Workspace } from './workspace.ts'

describe('folding while a base is being written', () => {
  test('[I2] gives the rows that a replay gives, also where a cold row of the base is touched again', async () => {
    const workspace = new Workspace()
    const gate = new Gate(({ method, path }) => method === 'create' && path.includes('/base/'))
    const compactor = await workspace.compactor({ store: interceptedStore(workspace.store, gate.before) })
    const shared = { asset: 'raw', partition: '2025-01-15' }
    await workspace.append(wipeFact('wipe-1', shared), reportFact('report-1', shared))
    await workspace.appendAll(runFacts('r1').batches.slice(0, 3))
    await compactor.catchUp()
    const publishing = compactor.publish({ kind: 'base' })
    await gate.arrived
    await workspace.append(reportFact('report-2', shared), reportFact('report-1', shared))
    await workspace.appendAll(runFacts('r1').batches.slice(3))
    await compactor.catchUp()
    gate.open()
    await publishing
    for (const kind of ['delta', 'base'] as const) {
      await compactor.publish({ kind })
      const report = await workspace.verify()
      expect(report.problems).toEqual([])
      expect(report.relaid).toEqual([])
    }
    // What a base took is in its files, and memory is free of it.
    for (const cold of compactor.state.coldTables.values()) expect(cold.recent.size).toBe(0)
    const row = await (await workspace.view()).lookup(partitionStatus, shared.asset, shared.partition)
    expect(row).toMatchObject({ wiped_event_id: expect.any(String), last_materialization_event_id: expect.any(String) })
  })
})
