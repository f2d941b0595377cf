import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { partitionStatus } from '../../src/domain/partitions/partition-status.table.ts'
import { directFiles } from '../../src/engine/manifest/manifest.ts'
import type { NewEvent } from '../../src/model/event.ts'
import type { AnyRow } from '../../src/model/table.ts'
import { countingStore } from '../../src/testing/counting-store.ts'
import { reportFact, runFacts, wipeFact } from '../../src/testing/facts.ts'
import { busyDay, hotRows } from './busy-day.ts'
import { paths, Workspace } from './workspace.ts'

describe('a view', { timeout: 120_000 }, () => {
  test('[I2] shows what the compactor holds at every publish, however seldom it is refreshed', async () => {
    const kind = fc.constantFrom('none', 'delta', 'delta', 'base')
    const day = fc.array(fc.nat(3), { minLength: 1, maxLength: 12 })
    await fc.assert(
      fc.asyncProperty(
        day,
        fc.array(kind, { minLength: 1, maxLength: 9 }),
        fc.integer({ min: 2, max: 9 }),
        async (choices, kinds, pause) => {
          const workspace = new Workspace()
          const compactor = await workspace.compactor()
          const [keen, lazy] = [await workspace.view(), await workspace.view()]
          for (const [i, batch] of busyDay(choices).entries()) {
            await workspace.append(...batch)
            await compactor.catchUp()
            const kind = kinds[i % kinds.length]!
            if (kind === 'none') continue
            await compactor.publish({ kind })
            const expected = hotRows(compactor.state)
            for (const view of i % pause === 0 ? [keen, lazy] : [keen]) {
              expect(await view.refresh()).toBe(true)
              expect(hotRows(view.state)).toEqual(expected)
              expect(view.manifest.number).toBe(compactor.manifest.number)
            }
            expect(await keen.refresh()).toBe(false)
          }
          expect(hotRows((await workspace.view()).state)).toEqual(hotRows(keen.state))
        },
      ),
      { numRuns: Number(process.env['SERVO_RUNS'] ?? 5) },
    )
  })

  test('[I17] reads, to refresh, the newest manifest and the deltas that are new to it, and nothing else', async () => {
    const workspace = new Workspace()
    const compactor = await workspace.compactor()
    const counting = countingStore(workspace.store)
    const view = await workspace.view(counting)
    const { batches } = runFacts('r', { tasks: 3 })
    const publish = async (batch: number, kind: 'delta' | 'base'): Promise<void> => {
      await workspace.append(...batches[batch]!)
      await compactor.catchUp()
      await compactor.publish({ kind })
    }
    const read = async (): Promise<string[]> => {
      counting.reset()
      await view.refresh()
      const listed = counting.requests.filter(({ method }) => method === 'list').map(({ path }) => path)
      expect(listed).toEqual([paths.manifests])
      expect(counting.pathsUnder(paths.manifests, 'get')).toHaveLength(1)
      expect(counting.pathsUnder(paths.ledger)).toEqual([])
      return counting.pathsUnder(paths.state).sort()
    }
    const filesOf = (publish: number): string[] => {
      const delta = compactor.manifest.l0.find((delta) => delta.publish === publish)?.tables ?? compactor.manifest.base.delta
      return Object.values(delta)
        .flatMap(({ rows, removed }) => [rows, removed].filter((file) => file !== undefined).map((file) => file.path))
        .sort()
    }
    await publish(0, 'delta')
    expect(await read()).toEqual(filesOf(1))
    await publish(1, 'delta')
    await publish(2, 'delta')
    expect(await read()).toEqual([...filesOf(2), ...filesOf(3)].sort())
    await publish(3, 'base')
    expect(await read(), 'a base costs what it changed').toEqual(filesOf(4))
    await publish(4, 'base')
    await publish(5, 'delta')
    const sizeOfState = [...directFiles(compactor.manifest)].length
    expect(await read()).toEqual([...filesOf(5), ...filesOf(6)].sort())
    expect(filesOf(5).length + filesOf(6).length).toBeLessThan(sizeOfState)

    // Nothing new is one listing.
    counting.reset()
    expect(await view.refresh()).toBe(false)
    expect(counting.count()).toBe(1)
    // Whoever slept through two bases begins with the newest.
    await publish(6, 'base')
    await publish(7, 'base')
    expect(await read()).toEqual(
      Object.values(compactor.manifest.base.tables)
        .map((file) => file.path)
        .sort(),
    )
  })

  test('[S2] finds a cold row whatever holds parts of it: deltas, sorted files, merged ones', async () => {
    const workspace = new Workspace()
    const compactor = await workspace.compactor()
    const view = await workspace.view()
    const row = async (): Promise<AnyRow | undefined> => {
      await view.refresh()
      return await view.lookup(partitionStatus, 'raw', 'p')
    }
    const publish = async (event: NewEvent, kind: 'delta' | 'base'): Promise<string> => {
      const { events } = await workspace.append(event, reportFact(`other-${workspace.clock.now()}`))
      await compactor.catchUp()
      await compactor.publish({ kind })
      return events[0]!.event_id
    }
    expect(await row()).toBeUndefined()
    const wiped = await publish(wipeFact('w', { partition: 'p' }), 'delta')
    expect(await row()).toMatchObject({ wiped_event_id: wiped, last_materialization_at: null })
    const early = await publish(reportFact('a', { partition: 'p', atMs: 1_000 }), 'base')
    expect(await row()).toMatchObject({ wiped_event_id: wiped, last_materialization_event_id: early })
    const late = await publish(reportFact('b', { partition: 'p', atMs: 2_000 }), 'delta')
    expect(await row()).toMatchObject({ wiped_event_id: wiped, last_materialization_event_id: late })
    await publish(reportFact('c', { partition: 'p', atMs: 1_500 }), 'base')
    for (let i = 0; i < 10; i++) {
      await publish(reportFact(`d${i}`, { partition: 'p', atMs: 100 + i }), 'base')
      expect(await row()).toMatchObject({ wiped_event_id: wiped, last_materialization_event_id: late })
    }
    expect(compactor.manifest.sorted_files['partition_status']!.map((file) => file.level)).toContain(1)
    expect(await (await workspace.view()).lookup(partitionStatus, 'raw', 'p')).toEqual(await row())
  })
})
