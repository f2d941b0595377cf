import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { memoryStore } from '../../src/adapters/memory/object-store.ts'
import { partitionStatus } from '../../src/domain/partitions/partition-status.table.ts'
import { runKeyIndex } from '../../src/domain/runs/run-key-index.table.ts'
import { runs } from '../../src/domain/runs/runs.table.ts'
import { tasks } from '../../src/domain/tasks/tasks.table.ts'
import { timers } from '../../src/domain/timers/timers.table.ts'
import { directFiles } from '../../src/engine/manifest.ts'
import type { NewEvent } from '../../src/engine/ledger.ts'
import { sortedByKey } from '../../src/engine/row-merge.ts'
import type { State } from '../../src/engine/state.ts'
import type { View } from '../../src/engine/view.ts'
import { HOUR_MS, MINUTE_MS } from '../../src/lib/time.ts'
import type { AnyRow } from '../../src/model/table.ts'
import { countingStore } from '../../src/testing/counting-store.ts'
import { reportFact, runFacts, wipeFact } from '../../src/testing/facts.ts'
import { interceptedStore } from './intercepted-store.ts'
import { paths, Workspace } from './workspace.ts'

/** All hot rows by table, in key order. */
function hotRows(state: State): Record<string, AnyRow[]> {
  return Object.fromEntries([...state.hotTables].map(([table, hot]) => [table.name, structuredClone(sortedByKey(table, hot.all()))]))
}

/** Every index gives exactly the rows that looking through all of them gives. */
function expectIndexed(state: State): void {
  for (const [table, hot] of state.hotTables) {
    for (const [name, columns] of Object.entries(table.indexes ?? {})) {
      const groups = Map.groupBy(hot.all(), (row) => JSON.stringify(columns.map((column) => row[column])))
      for (const rows of groups.values()) {
        const found = [...hot.where(name, ...columns.map((column) => rows[0]![column]))]
        expect(sortedByKey(table, found), `${table.name}.${name}`).toEqual(sortedByKey(table, rows))
        expect(found, `${table.name}.${name}: each row once`).toHaveLength(rows.length)
      }
      expect([...hot.where(name, ...columns.map(() => 'no such value'))]).toEqual([])
    }
  }
}

/** Runs that go on side by side, a report now and then: the batches of a busy day, in one of many orders. */
function busyDay(choices: readonly number[]): NewEvent[][] {
  const runsUnderWay = [0, 1, 2, 3].map((i) => [...runFacts(`run-${i}`, { tasks: 1 + (i % 3), outcome: i === 2 ? 'FAILED' : 'SUCCEEDED' }).batches])
  const day: NewEvent[][] = []
  for (let i = 0; runsUnderWay.some((batches) => batches.length > 0); i++) {
    const open = runsUnderWay.filter((batches) => batches.length > 0)
    const next = open[(choices[i % choices.length] ?? 0) % open.length]!
    day.push([...next.shift()!])
    if (i % 5 === 0) day.push([reportFact(`report-${i}`, { partition: `p${i % 2}` }), wipeFact(`wipe-${i}`, { partition: `p${i % 3}` })])
  }
  return day
}

describe('a view', () => {
  test('[I2] shows what the compactor holds at every publish, with its indexes, however seldom it is refreshed', async () => {
    const kind = fc.constantFrom('none', 'delta', 'delta', 'base')
    const day = fc.array(fc.nat(3), { minLength: 1, maxLength: 12 })
    await fc.assert(
      fc.asyncProperty(day, fc.array(kind, { minLength: 1, maxLength: 9 }), fc.integer({ min: 2, max: 9 }), async (choices, kinds, pause) => {
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
            expectIndexed(view.state)
            expect(view.manifest.number).toBe(compactor.manifest.number)
          }
          expect(await keen.refresh()).toBe(false)
        }
        expect(hotRows((await workspace.view()).state)).toEqual(hotRows(keen.state))
      }),
      { numRuns: Number(process.env['SERVO_RUNS'] ?? 8) },
    )
  })

  test('[INV-7] reads, to refresh, the newest manifest and the deltas that are new to it, and nothing else', async () => {
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
      return Object.values(delta).flatMap(({ rows, removed }) => [rows, removed].filter((file) => file !== undefined).map((file) => file.path)).sort()
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
    expect(await read()).toEqual(Object.values(compactor.manifest.base.tables).map((file) => file.path).sort())
  })

  test('finds a cold row whatever holds parts of it: deltas, runs, merged runs', async () => {
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
    expect(compactor.manifest.runs['partition_status']!.map((run) => run.level)).toContain(1)
    expect(await (await workspace.view()).lookup(partitionStatus, 'raw', 'p')).toEqual(await row())
  })
})

describe('a fresh read', () => {
  async function withTail(): Promise<{ workspace: Workspace; view: View }> {
    const workspace = new Workspace()
    const compactor = await workspace.compactor()
    const day = busyDay([0, 1, 2, 3])
    const half = day.length >> 1
    for (const batch of day.slice(0, half)) await workspace.append(...batch)
    await compactor.catchUp()
    await compactor.publish({ kind: 'base' })
    await workspace.append(...day[half]!)
    await compactor.catchUp()
    await compactor.publish({ kind: 'delta' })
    const view = await workspace.view()
    for (const batch of day.slice(half + 1)) await workspace.append(...batch)
    return { workspace, view }
  }

  test('shows what the ledger holds beyond the newest manifest, leaves the view as it was, and publishes nothing', async () => {
    const { workspace, view } = await withTail()
    const before = hotRows(view.state)
    const stored = await workspace.digests()
    const fresh = await view.fresh()
    expect(fresh.complete).toBe(true)
    expect(fresh.events).toBeGreaterThan(10)
    expect(hotRows(view.state)).toEqual(before)
    expectIndexed(view.state)
    expect(await workspace.digests()).toEqual(stored)

    const compactor = await workspace.compactor({ name: 'next' })
    await compactor.catchUp()
    expect(hotRows(fresh.state)).toEqual(hotRows(compactor.state))
    expectIndexed(fresh.state)
    expect([...fresh.state.hot(timers).all()]).toEqual([])
    expect([...view.state.hot(timers).all()]).not.toEqual([])
    // Twice is the same, and the fork of the first is untouched by the second.
    expect(hotRows((await view.fresh()).state)).toEqual(hotRows(fresh.state))
    await compactor.publish()
    await view.refresh()
    expect(hotRows(view.state)).toEqual(hotRows(compactor.state))
    expect(await view.fresh()).toMatchObject({ events: 0, complete: true })
  })

  test('knows a run key that only files know, and one that only the tail knows', async () => {
    const { workspace, view } = await withTail()
    await workspace.append(runFacts('run-0').batches[0]![0]!, runFacts('brand new').batches[0]![0]!)
    const { state } = await view.fresh()
    expect(state.hot(runs).get(runFacts('brand new').runId)).toBeDefined()
    expect(state.cold(runKeyIndex).lookup('manual:brand new')).toMatchObject({ run_id: runFacts('brand new').runId })
    expect(await view.lookup(runKeyIndex, 'manual:brand new')).toBeUndefined()
    expect(await view.lookup(runKeyIndex, 'manual:run-0')).toBeDefined()
  })

  test('stops at its limit of events, of time and of age, and says that it is not complete', async () => {
    const { workspace, view } = await withTail()
    const all = (await view.fresh()).events
    const few = await view.fresh({ maxEvents: 5 })
    expect(few.complete).toBe(false)
    expect(few.events).toBeGreaterThanOrEqual(5)
    expect(few.events).toBeLessThan(all)
    expect(await view.fresh({ maxEvents: 0 })).toMatchObject({ events: 0, complete: false })

    // Each segment takes 40 ms to read.
    const slow = interceptedStore(workspace.store, ({ path }) => {
      if (path.startsWith(paths.ledger) && path.endsWith('.json')) workspace.clock.pass(40)
    })
    const hurried = await (await workspace.view(slow)).fresh({ maxTimeMs: 200 })
    expect(hurried.complete).toBe(false)
    expect(hurried.events).toBeGreaterThan(0)
    expect(hurried.events).toBeLessThan(all)
  })

  test('looks back no further than it is allowed to', async () => {
    const counting = countingStore(memoryStore())
    const workspace = new Workspace(counting)
    const compactor = await workspace.compactor()
    await workspace.append(reportFact('old'))
    await compactor.catchUp()
    await compactor.publish()
    const straggler = new Workspace(counting, workspace.clock, 9)
    workspace.clock.pass(-HOUR_MS)
    await straggler.append(...runFacts('an hour ago').batches[0]!)
    workspace.clock.pass(HOUR_MS + MINUTE_MS)
    await workspace.append(...runFacts('now').batches[0]!)
    const view = await workspace.view()
    const near = await view.fresh()
    expect([...near.state.hot(runs).all()].map((run) => run.run_key)).toEqual(['manual:now'])
    const far = await view.fresh({ maxAgeMs: 2 * HOUR_MS })
    expect([...far.state.hot(runs).all()].map((run) => run.run_key).sort()).toEqual(['manual:an hour ago', 'manual:now'])
  })

  test('passes over a damaged segment and says that it is not complete', async () => {
    const { workspace, view } = await withTail()
    const segments = await workspace.paths(paths.ledger)
    await workspace.store.put(segments.at(-2)!, new Uint8Array(7))
    const fresh = await view.fresh()
    expect(fresh.complete).toBe(false)
    expect(fresh.events).toBeGreaterThan(5)
    expect([...fresh.state.hot(tasks).all()].length).toBeGreaterThan(0)
  })
})
