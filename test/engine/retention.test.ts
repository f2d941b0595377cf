import { describe, expect, test } from 'vitest'
import { memoryStore } from '../../src/adapters/memory/object-store.ts'
import { scheduleTicks } from '../../src/domain/schedules/schedule-ticks.table.ts'
import type { Compactor } from '../../src/engine/publish/compactor.ts'
import { FILES_PER_LEVEL } from '../../src/engine/publish/merge-levels.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../src/lib/time.ts'
import { idempotencyKeys } from '../../src/model/system-tables.ts'
import { countingStore } from '../../src/testing/counting-store.ts'
import { reportFact, runFacts, tickFact } from '../../src/testing/facts.ts'
import { reachableFrom } from './reachable.ts'
import { paths, Workspace } from './workspace.ts'

const retention = { runs: 7, tasks: 3, schedule_ticks: 3, idempotency_keys: 7 }

/** One day in the life of a workspace: a run, a tick and a report, sealed by a base. */
async function liveOneDay(workspace: Workspace, compactor: Compactor, day: number): Promise<void> {
  await workspace.append(...runFacts(`day-${day}`, { tasks: 1 }).batches.flat())
  await workspace.append(tickFact('daily', workspace.clock.now()), reportFact(`day-${day}`))
  await compactor.catchUp()
  await compactor.publish({ kind: 'base' })
  // Appends take a little of the day, too.
  workspace.clock.pass(DAY_MS - MINUTE_MS)
}

const daysOf = async (workspace: Workspace, table: string): Promise<string[]> =>
  (await workspace.paths(`${paths.state}${table}/history/`)).map((path) => path.split('/').at(-2)!)

describe('retention', () => {
  test('[I6] drops history after its days, table by table, once no kept manifest shows it any more; verify stays clean', async () => {
    const workspace = new Workspace()
    const compactor = await workspace.compactor({ retention })
    for (let day = 0; day < 12; day++) {
      await liveOneDay(workspace, compactor, day)
      expect((await workspace.verify({ quick: true })).problems).toEqual([])
    }
    const before = await daysOf(workspace, 'runs')
    expect(before).toHaveLength(12)
    // The files are still there for readers of manifests that show them.
    for (const manifest of await workspace.manifests()) await reachableFrom(workspace.store, manifest)

    await workspace.collect(15 * MINUTE_MS)
    expect(await daysOf(workspace, 'runs')).toEqual(before.slice(4))
    expect(await daysOf(workspace, 'tasks')).toEqual(before.slice(8))
    expect(await daysOf(workspace, 'task_attempts'), 'a table without an entry is kept for ever').toEqual(before)
    const report = await workspace.verify()
    expect(report).toMatchObject({ ok: true, problems: [], unfolded: [] })
    const reachable = await reachableFrom(workspace.store, compactor.manifest)
    expect(new Set(await workspace.paths(paths.state))).toEqual(reachable)
  })

  test('[I6] leaves dropped history to readers of a manifest that still shows it, for as long as that is kept', async () => {
    const workspace = new Workspace()
    const compactor = await workspace.compactor({ retention })
    for (let day = 0; day < 8; day++) await liveOneDay(workspace, compactor, day)
    await workspace.collect(15 * MINUTE_MS)
    expect(await daysOf(workspace, 'runs')).toHaveLength(8)
    workspace.clock.pass(MINUTE_MS * 2)
    await workspace.append(reportFact('one more'))
    await compactor.catchUp()
    await compactor.publish({ kind: 'base' })
    expect(compactor.manifest.dropped['runs']).toBeGreaterThan(0)
    await workspace.collect(15 * MINUTE_MS)
    for (const manifest of await workspace.manifests()) await reachableFrom(workspace.store, manifest)
    expect(await daysOf(workspace, 'runs')).toHaveLength(8)
    workspace.clock.pass(20 * MINUTE_MS)
    await workspace.collect(15 * MINUTE_MS)
    expect((await daysOf(workspace, 'runs')).length).toBeLessThan(8)
    expect((await workspace.verify()).problems).toEqual([])
  })

  test('[F9] drops expired rows of a cold table when its sorted files are merged, and keeps the others', async () => {
    const workspace = new Workspace()
    const compactor = await workspace.compactor({ retention })
    const ticks: string[] = []
    for (let day = 0; day < FILES_PER_LEVEL; day++) {
      ticks.push(`daily:${Math.floor(workspace.clock.now() / 1_000)}`)
      await liveOneDay(workspace, compactor, day)
    }
    const view = await workspace.view()
    const kept = await Promise.all(ticks.map(async (tick) => (await view.lookup(scheduleTicks, tick)) !== undefined))
    // The merge happened on the eighth day, when those of the last three days were young enough.
    expect(kept).toEqual([false, false, false, false, true, true, true, true])
    expect(await view.lookup(idempotencyKeys, 'materialization_report:day-0'), 'kept for a week').toBeDefined()
    expect((await workspace.verify()).problems).toEqual([])
    for (let day = FILES_PER_LEVEL; day < 2 * FILES_PER_LEVEL; day++) await liveOneDay(workspace, compactor, day)
    await view.refresh()
    expect(await view.lookup(idempotencyKeys, 'materialization_report:day-8'), 'merged a week later').toBeDefined()
    expect((await workspace.verify()).problems).toEqual([])
  })

  test('[I2] is repeated by a rebuild: dropped rows stay dropped, and the same bytes come back, whatever the rules are now', async () => {
    const workspace = new Workspace()
    const compactor = await workspace.compactor({ retention })
    for (let day = 0; day < 10; day++) await liveOneDay(workspace, compactor, day)
    await workspace.collect(MINUTE_MS)
    const before = await workspace.digests(paths.state)
    for (const path of Object.keys(before)) if (path.endsWith('.parquet')) await workspace.store.delete(path)
    // It is not told of the rules: they are recorded with each base.
    expect(await workspace.rebuild()).toMatchObject({ order: 'recorded', problems: [] })
    expect(await workspace.digests(paths.state)).toEqual(before)
    expect((await workspace.verify()).problems).toEqual([])
  })

  test('reads only the history that it passes: a base costs the same however long the history is', async () => {
    const counting = countingStore(memoryStore())
    const workspace = new Workspace(counting)
    const compactor = await workspace.compactor({ retention })
    const reads: number[] = []
    for (let day = 0; day < 200; day++) {
      await workspace.append(...runFacts(`day-${day}`, { tasks: 0 }).batches.flat())
      await compactor.catchUp()
      counting.reset()
      await compactor.publish({ kind: 'base' })
      reads.push(counting.count('get'))
      workspace.clock.pass(DAY_MS)
    }
    // A page of the list for each of the four tables that have a rule, and no more.
    expect(Math.max(...reads.slice(20))).toBeLessThanOrEqual(4)
    workspace.clock.pass(HOUR_MS)
    await workspace.collect(0)
    expect((await daysOf(workspace, 'runs')).length).toBeLessThanOrEqual(8)
    expect((await workspace.verify({ quick: true })).problems).toEqual([])
  })

  test('[F9] of idempotency keys is 31 days when nobody has said otherwise', async () => {
    const workspace = new Workspace()
    const compactor = await workspace.compactor()
    for (let i = 0; i < FILES_PER_LEVEL; i++) {
      if (i > 0) workspace.clock.pass(5 * DAY_MS)
      await workspace.append(reportFact(`r${i}`))
      await compactor.catchUp()
      await compactor.publish({ kind: 'base' })
    }
    // The merge happened with the last of eight bases, when the first keys were 35 and 30 days old.
    const view = await workspace.view()
    const [first, second] = await Promise.all(
      ['r0', 'r1'].map((report) => view.lookup(idempotencyKeys, `materialization_report:${report}`)),
    )
    expect(first).toBeUndefined()
    expect(second).toBeDefined()
  })

  test('[F9] of idempotency keys for less than a queue may repeat a message is refused', async () => {
    const workspace = new Workspace()
    const opening = workspace.compactor({ retention: { idempotency_keys: 6 } })
    await expect(opening).rejects.toMatchObject({ kind: 'invalid', code: 'retention_too_short' })
  })
})

describe('deltas become a base', () => {
  async function opened(limits: object) {
    const workspace = new Workspace()
    const compactor = await workspace.compactor({
      limits: { max_count: 1_000, max_rows: 1e6, max_age_ms: 1e9, max_segments: 1e6, ...limits },
    })
    let count = 0
    const publish = async (segments = 1): Promise<string> => {
      for (let i = 0; i < segments; i++) await workspace.append(reportFact(`r${count++}`))
      await compactor.catchUp()
      const outcome = await compactor.publish()
      if (outcome === 'nothing') return outcome
      return compactor.manifest.l0.length === 0 ? 'base' : 'delta'
    }
    return { workspace, compactor, publish }
  }

  test('when there are enough of them', async () => {
    const { publish, compactor } = await opened({ max_count: 4 })
    const kinds = []
    for (let i = 0; i < 8; i++) kinds.push(await publish())
    expect(kinds).toEqual(['delta', 'delta', 'delta', 'base', 'delta', 'delta', 'delta', 'base'])
    expect(compactor.manifest.l0_limits.max_count).toBe(4)
  })

  test('when their rows are enough, also all at once', async () => {
    const { publish, compactor } = await opened({ max_rows: 30 })
    // Each report is a row, a version and a key.
    expect([await publish(4), await publish(4), await publish(4), await publish(4)]).toEqual([
      'delta',
      'delta',
      'base',
      'delta',
    ])
    expect(compactor.manifest.l0_rows).toBe(12)
    expect(await publish(10)).toBe('base')
    expect(await publish(10), 'without a delta before it').toBe('base')
  })

  test('[S10] when their segments are enough, also all at once: the manifest stays small', async () => {
    const { publish } = await opened({ max_segments: 5 })
    expect([await publish(2), await publish(2), await publish(2), await publish(4)]).toEqual([
      'delta',
      'delta',
      'base',
      'delta',
    ])
    expect(await publish(1)).toBe('base')
    expect(await publish(7), 'without a delta before it').toBe('base')
  })

  test('when the oldest is old enough, also when nothing happens any more; then there is nothing left to do', async () => {
    const { workspace, publish, compactor } = await opened({ max_age_ms: 10 * MINUTE_MS })
    expect(await publish()).toBe('delta')
    workspace.clock.pass(9 * MINUTE_MS)
    expect(await publish(0)).toBe('nothing')
    workspace.clock.pass(MINUTE_MS)
    expect(await publish(0)).toBe('base')
    expect(compactor.manifest.watermarks.segments).toBe(1)
    workspace.clock.pass(DAY_MS)
    expect(await publish(0)).toBe('nothing')
    expect(await publish()).toBe('delta')
    workspace.clock.pass(9 * MINUTE_MS)
    expect(await publish()).toBe('delta')
    workspace.clock.pass(MINUTE_MS)
    expect(await publish()).toBe('base')
    expect((await workspace.verify()).problems).toEqual([])
  })
})
