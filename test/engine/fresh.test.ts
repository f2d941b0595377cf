import { describe, expect, test } from 'vitest'
import { memoryStore } from '../../src/adapters/memory/object-store.ts'
import { runKeyIndex } from '../../src/domain/runs/run-key-index.table.ts'
import { runs } from '../../src/domain/runs/runs.table.ts'
import { tasks } from '../../src/domain/tasks/tasks.table.ts'
import { timers } from '../../src/domain/timers/timers.table.ts'
import type { View } from '../../src/engine/loop/view.ts'
import { HOUR_MS, MINUTE_MS } from '../../src/lib/time.ts'
import { countingStore } from '../../src/testing/counting-store.ts'
import { reportFact, runFacts } from '../../src/testing/facts.ts'
import { busyDay, hotRows } from './busy-day.ts'
import { interceptedStore } from './intercepted-store.ts'
import { paths, Workspace } from './workspace.ts'

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
    expect(await workspace.digests()).toEqual(stored)

    const compactor = await workspace.compactor({ name: 'next' })
    await compactor.catchUp()
    expect(hotRows(fresh.state)).toEqual(hotRows(compactor.state))
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

  test('finds a straggler, however far back its name is', async () => {
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
    const { state } = await (await workspace.view()).fresh()
    expect([...state.hot(runs).all()].map((run) => run.run_key).sort()).toEqual(['manual:an hour ago', 'manual:now'])
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
