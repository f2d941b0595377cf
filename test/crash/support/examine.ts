import { expect } from 'vitest'
import { fsStore } from '../../../src/adapters/fs/object-store.ts'
import { partitionStatus } from '../../../src/domain/partitions/partition-status.table.ts'
import { runKeyIndex } from '../../../src/domain/runs/run-key-index.table.ts'
import { runs } from '../../../src/domain/runs/runs.table.ts'
import { scheduleTicks } from '../../../src/domain/schedules/schedule-ticks.table.ts'
import { decodeSegment } from '../../../src/engine/ledger/segment.ts'
import { readEntries } from '../../../src/engine/manifest/page-list.ts'
import type { Envelope } from '../../../src/model/envelope.ts'
import { historyIndex, idempotencyKeys } from '../../../src/model/system-tables.ts'
import { paths, scope, TestClock, Workspace } from '../../engine/workspace.ts'

/** What must be true of a folder whenever nobody is writing to it, whatever happened to those who were. */
export class Examination {
  readonly workspace: Workspace
  readonly acknowledged = new Set<string>()
  readonly #manifestsSeen = new Map<number, string>()

  constructor(dir: string) {
    this.workspace = new Workspace(fsStore(dir), new TestClock(Date.now()))
  }

  expectAcknowledged(eventIds: readonly string[]): void {
    for (const id of eventIds) this.acknowledged.add(id)
  }

  async check(context: string): Promise<void> {
    const report = await this.workspace.verify()
    expect(report.problems, context).toEqual([])
    expect(report, context).toMatchObject({ replayed: true, relaid: [] })

    const counts = await this.workspace.eventCounts()
    expect(
      [...this.acknowledged].filter((id) => !counts.has(id)),
      `${context}: acknowledged and lost`,
    ).toEqual([])
    expect(
      [...counts].filter(([, count]) => count !== 1),
      `${context}: there twice`,
    ).toEqual([])
    await this.#checkManifests(context)
  }

  /** One manifest per number, for ever; epochs, publishes and positions never go back. */
  async #checkManifests(context: string): Promise<void> {
    for (const [path, digest] of Object.entries(await this.workspace.digests(paths.manifests))) {
      const number = Number(path.slice(-'000000000000.json'.length, -'.json'.length))
      expect(this.#manifestsSeen.get(number) ?? digest, `${context}: manifest ${number} became another`).toBe(digest)
      this.#manifestsSeen.set(number, digest)
    }
    const manifests = await this.workspace.manifests()
    for (const [i, after] of manifests.entries()) {
      const before = manifests[i - 1]
      if (before === undefined) continue
      expect(after.epoch, context).toBeGreaterThanOrEqual(before.epoch)
      expect(after.publish, context).toBeGreaterThanOrEqual(before.publish)
      expect(after.watermarks.segments, context).toBeGreaterThanOrEqual(before.watermarks.segments)
    }
  }

  /** Folds what is left and asks the tables for every fact in the ledger. Says whether the folder has lived to see runs merged. */
  async checkProjections(context: string): Promise<{ merged: boolean; bases: number }> {
    const { workspace } = this
    workspace.clock.nowMs = Date.now()
    const compactor = await workspace.compactor({ name: 'examination' })
    await compactor.catchUp()
    await compactor.publish({ kind: 'base' })
    expect([...compactor.fold.damaged.values()], context).toEqual([])
    const report = await workspace.verify()
    expect(report, context).toMatchObject({ ok: true, unfolded: [], parked: 0, relaid: [] })
    expect(compactor.manifest.watermarks.events, context).toBe((await workspace.eventCounts()).size)

    const view = await workspace.view()
    const missing: string[] = []
    for (const path of await workspace.paths(paths.ledger)) {
      for (const event of decodeSegment((await workspace.store.get(path))!, path, scope)) {
        if (!(await isProjected(event))) missing.push(`${event.event_type} ${event.event_id}`)
      }
    }
    expect(missing, `${context}: in the ledger, but not in its tables`).toEqual([])
    const { sorted_files: files, order } = view.manifest
    let bases = 0
    for await (const _ of readEntries(workspace.store, order)) bases += 1
    return { merged: Object.values(files).some((list) => list.some((run) => run.level > 0)), bases }

    async function isProjected({ event_type, event_id, idempotency_key, payload }: Envelope): Promise<boolean> {
      const text = (name: string): string => payload[name] as string
      switch (event_type) {
        case 'RunRequested':
          return (await view.lookup(runKeyIndex, text('run_key')))?.run_id === text('run_id')
        case 'MaterializationReported': {
          const row = await view.lookup(partitionStatus, text('asset_key'), text('partition_key'))
          const key = await view.lookup(idempotencyKeys, idempotency_key)
          // Others speak of the same partition, and the latest of them counts; but each key is its own.
          return row?.last_materialization_event_id != null && key?.event_id === event_id
        }
        case 'PartitionWiped':
          return (await view.lookup(idempotencyKeys, idempotency_key))?.event_id === event_id
        case 'ScheduleTicked':
          return (await view.lookup(scheduleTicks, text('tick_id')))?.tick_event_id === event_id
        default: {
          // Everything else is about a run, which is unfinished or sealed.
          const hot = view.state.hot(runs).get(text('run_id')) !== undefined
          return hot || (await view.lookup(historyIndex, 'runs', text('run_id'))) !== undefined
        }
      }
    }
  }
}
