import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { orchestration } from '../../src/domain/index.ts'
import { partitionStatus } from '../../src/domain/partitions/partition-status.table.ts'
import { runKeyIndex } from '../../src/domain/runs/run-key-index.table.ts'
import { PAGE_ENTRIES } from '../../src/engine/manifest/page-list.ts'
import type { Compactor } from '../../src/engine/publish/compactor.ts'
import { collectGarbage } from '../../src/engine/publish/garbage.ts'
import { Publisher } from '../../src/engine/publish/publisher.ts'
import { isServoError } from '../../src/lib/error.ts'
import { HOUR_MS, MINUTE_MS } from '../../src/lib/time.ts'
import type { StoreRequest } from '../../src/testing/counting-store.ts'
import { reportFact, runFacts } from '../../src/testing/facts.ts'
import { ScriptedLease } from '../../src/testing/scripted-lease.ts'
import { VirtualClock } from '../../src/testing/virtual-clock.ts'
import { isFaultTried } from '../tried-faults.ts'
import { Gate, interceptedStore } from './intercepted-store.ts'
import { reachableFrom } from './reachable.ts'
import { paths, scope, Workspace } from './workspace.ts'

async function publishNext(workspace: Workspace, compactor: Compactor, name: string, kind: 'delta' | 'base'): Promise<void> {
  const [run] = runFacts(name, { tasks: 0 }).batches
  await workspace.append(...run!, reportFact(name))
  await compactor.catchUp()
  await compactor.publish({ kind })
}

/** [I6] Every manifest that is there leads only to files that are there and are what was written. */
async function expectAllReachable(workspace: Workspace): Promise<Set<string>> {
  const reachable = new Set<string>()
  for (const manifest of await workspace.manifests()) {
    for (const path of await reachableFrom(workspace.store, manifest)) reachable.add(path)
  }
  return reachable
}

async function expectNoOrphans(workspace: Workspace): Promise<void> {
  expect(new Set(await workspace.paths(paths.state))).toEqual(await expectAllReachable(workspace))
}

describe('garbage collection', { timeout: 120_000 }, () => {
  /** Leads as `servo run` does: opens the state, writes one thing, publishes and ends. Returns how many times it collected. */
  async function leadBriefly(workspace: Workspace, name: string): Promise<number> {
    const clock = new VirtualClock(workspace.clock.now())
    const compactor = await workspace.compactor({ lease: new ScriptedLease(), name })
    let collected = 0
    const publisher = new Publisher({
      compactor,
      clock,
      async collect(limit) {
        collected += 1
        const { store } = workspace
        await collectGarbage({ store, scope, registry: orchestration, clock, limit })
      },
      onError: (error) => expect.fail(String(error)),
    })
    await workspace.append(reportFact(name))
    await compactor.catchUp()
    await publisher.flush()
    publisher.stop()
    return collected
  }

  test('[S9] is done by commands that lead for a moment too, now and then, so that their files do not grow in number', async () => {
    const workspace = new Workspace()
    let collected = 0
    const counts: number[] = []
    for (let run = 0; run < 70; run++) {
      workspace.clock.pass(MINUTE_MS)
      collected += await leadBriefly(workspace, `run ${run}`)
      counts.push((await workspace.paths(paths.manifests)).length)
    }
    // Each makes two manifests. The collections are few, and keep what was published in the last quarter of an hour.
    expect(collected).toBe(2)
    expect(Math.max(...counts)).toBeLessThanOrEqual(64 + 2 * 16)
    expect((await workspace.paths(paths.state)).length).toBeLessThan(400)
    await expectAllReachable(workspace)

    // After a while without any, the first one collects what those before it have left, and only that one.
    workspace.clock.pass(2 * HOUR_MS)
    expect(await leadBriefly(workspace, 'later')).toBe(1)
    expect((await workspace.paths(paths.manifests)).length).toBeLessThanOrEqual(3)
    expect(await leadBriefly(workspace, 'and again')).toBe(0)
  })

  test('[S9] up to a limit leaves the rest to the next one, and every manifest that is kept its files', async () => {
    const workspace = new Workspace()
    const compactor = await workspace.compactor()
    for (let i = 0; i < 12; i++) await publishNext(workspace, compactor, `run ${i}`, i % 3 === 0 ? 'base' : 'delta')
    workspace.clock.pass(HOUR_MS)
    await publishNext(workspace, compactor, 'last', 'base')
    const { store, clock } = workspace
    let rounds = 0
    for (let removed = -1; removed !== 0; rounds++) {
      const report = await collectGarbage({
        store,
        scope,
        registry: orchestration,
        clock,
        graceMs: 0,
        limit: { deletes: 5, ms: 1_000 },
      })
      removed = report.files + report.manifests
      expect(removed).toBeLessThanOrEqual(5)
      const kept = (await workspace.manifests()).filter(({ number }) => number >= report.boundary)
      for (const manifest of kept) await reachableFrom(workspace.store, manifest)
    }
    expect(rounds).toBeGreaterThan(4)
    await expectNoOrphans(workspace)
  })

  test('[S9][I6] keeps every file of every manifest that it keeps, whenever and however often it runs', async () => {
    const step = fc.constantFrom(
      'delta',
      'delta',
      'base',
      'collect',
      'collect twice at once',
      'collect late',
      'reopen',
      'minute',
    )
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 30 }), async (steps) => {
        const workspace = new Workspace()
        let compactor = await workspace.compactor()
        for (const [i, what] of steps.entries()) {
          if (what === 'delta' || what === 'base') await publishNext(workspace, compactor, `r${i}`, what)
          else if (what === 'collect') await workspace.collect(0)
          else if (what === 'collect late') await workspace.collect(3 * MINUTE_MS)
          else if (what === 'collect twice at once') await Promise.all([workspace.collect(0), workspace.collect(MINUTE_MS)])
          else if (what === 'reopen') compactor = await workspace.compactor({ name: `next ${i}` })
          else workspace.clock.pass(MINUTE_MS)
          await expectAllReachable(workspace)
        }
        expect((await workspace.verify({ quick: true })).problems).toEqual([])
        workspace.clock.pass(HOUR_MS)
        await workspace.collect(0)
        await expectNoOrphans(workspace)
        expect((await workspace.collect(0)).files, 'a second collection finds nothing').toBe(0)
        expect((await workspace.manifests()).length).toBeLessThanOrEqual(1)
      }),
      { numRuns: Number(process.env['SERVO_RUNS'] ?? 12) },
    )
  })

  test('[S9][I6] that is stopped at any of its requests and goes on after others have published and collected does no harm', async () => {
    const start = new Workspace()
    const first = await start.compactor()
    for (let i = 0; i < 9; i++) await publishNext(start, first, `r${i}`, i % 3 === 2 ? 'base' : 'delta')
    start.clock.pass(MINUTE_MS)
    const requests: StoreRequest[] = []
    const counted = await start.copy()
    await counted.collect(
      0,
      interceptedStore(counted.store, (request) => void requests.push(request)),
    )
    expect(requests.filter(({ method }) => method === 'delete').length).toBeGreaterThan(20)
    for (const [nth, paused] of requests.entries()) {
      // Between listing one table and the next there is nothing to be late for.
      if (paused.method === 'list' && paused.path.startsWith(paths.state) && nth % 5 > 0) continue
      if (!isFaultTried()) continue
      const workspace = await start.copy()
      const leader = await workspace.compactor({ name: 'leader' })
      let count = 0
      const gate = new Gate(() => count++ === nth)
      const collecting = workspace.collect(0, interceptedStore(workspace.store, gate.before))
      await gate.arrived
      for (let i = 0; i < 3; i++) await publishNext(workspace, leader, `late-${i}`, i === 1 ? 'base' : 'delta')
      if (nth % 2 === 0) {
        workspace.clock.pass(MINUTE_MS)
        await workspace.collect(0)
      }
      gate.open()
      const outcome = await collecting.catch((error: unknown) => error)
      const context = `stopped before request ${nth}, ${paused.method} ${paused.path}`
      // The manifest it was about to read a page of may be gone; it runs again later.
      expect(isServoError(outcome) ? outcome.code : 'done', context).toMatch(/done|file_missing/)
      expect((await workspace.verify({ quick: nth % 5 > 0 })).problems, context).toEqual([])
      await expectAllReachable(workspace)
    }
  })

  test('[S9] leaves a reader its manifest for as long as it is promised, sorted files that were merged meanwhile included', async () => {
    const workspace = new Workspace()
    const compactor = await workspace.compactor()
    for (let i = 0; i < 7; i++) await publishNext(workspace, compactor, `r${i}`, 'base')
    const reader = await workspace.view()
    const late = await workspace.view()
    for (let i = 7; i < 12; i++) {
      await publishNext(workspace, compactor, `r${i}`, 'base')
      workspace.clock.pass(MINUTE_MS)
    }
    await workspace.collect(10 * MINUTE_MS)
    expect(await reader.lookup(partitionStatus, 'raw', 'r3')).toMatchObject({ partition_key: 'r3' })
    expect(await reader.lookup(runKeyIndex, 'manual:r6')).toBeDefined()
    expect(await reader.lookup(partitionStatus, 'raw', 'r9'), 'it sees what it held').toBeUndefined()

    workspace.clock.pass(HOUR_MS)
    await workspace.collect(10 * MINUTE_MS)
    await expect(late.lookup(partitionStatus, 'raw', 'r3')).rejects.toMatchObject({ kind: 'corrupt', code: 'file_missing' })
    expect(await late.refresh()).toBe(true)
    expect(await late.lookup(partitionStatus, 'raw', 'r9')).toMatchObject({ partition_key: 'r9' })
  })

  test('[S9] leaves a manifest for fifteen minutes after the next one, unless told otherwise', async () => {
    const workspace = new Workspace()
    const compactor = await workspace.compactor()
    for (const name of ['first', 'second']) await publishNext(workspace, compactor, name, 'base')
    const { store, clock } = workspace
    const left = async (): Promise<number> => {
      await collectGarbage({ store, clock, scope, registry: orchestration })
      return (await workspace.manifests()).length
    }
    const before = await left()
    clock.pass(14 * MINUTE_MS)
    expect(await left()).toBe(before)
    clock.pass(2 * MINUTE_MS)
    expect(await left()).toBe(1)
  })

  test('[V4] reclaims what a crashed publish left, history, recorded order and pages of lists included', async () => {
    const workspace = new Workspace()
    const compactor = await workspace.compactor({ history: { full_rows: 1 } })
    // The next base fills a page of each list.
    for (let i = 1; i < PAGE_ENTRIES; i++) await publishNext(workspace, compactor, `r${i}`, 'base')
    const gate = new Gate(({ method, path }) => method === 'create' && path === paths.manifest(compactor.manifest.number + 2))
    const crashing = await workspace.compactor({
      name: 'crashing',
      store: interceptedStore(workspace.store, gate.before),
      history: { full_rows: 1 },
    })
    void publishNext(workspace, crashing, 'crash', 'base')
    await gate.arrived
    const epoch = crashing.manifest.epoch
    const left = (await workspace.paths(paths.state)).filter((path) => new RegExp(`-${epoch}(-\\d+)?\\.\\w+$`).test(path))
    for (const layer of ['_order/', '_order_pages/', '_history_pages/', '/history/', '/runs/', '/removed/']) {
      expect(
        left.filter((path) => path.includes(layer)),
        layer,
      ).not.toEqual([])
    }

    const next = await workspace.compactor({ name: 'next' })
    await publishNext(workspace, next, 'after the crash', 'base')
    expect(next.manifest.order.levels.length).toBe(2)
    workspace.clock.pass(HOUR_MS)
    await workspace.collect(0)
    const paths2 = await workspace.paths(paths.state)
    expect(left.filter((path) => paths2.includes(path))).toEqual([])
    await expectNoOrphans(workspace)
    expect((await workspace.verify()).problems).toEqual([])
    for (let i = 0; i < 3; i++) await publishNext(workspace, next, `later-${i}`, 'base')
    workspace.clock.pass(HOUR_MS)
    await workspace.collect(0)
    await expectNoOrphans(workspace)
  })

  test('touches nothing that is not its own', async () => {
    const workspace = new Workspace()
    const compactor = await workspace.compactor()
    const strange = [
      'state/orchestration/runs/base/README',
      'state/orchestration/runs/history/2025-01-15/12.parquet',
      'state/orchestration/_order/notes.json',
    ]
    for (const name of [...strange, 'notes.txt', 'manifests/orchestration/1.json']) {
      await workspace.store.put(`${paths.root}${name}`, new Uint8Array(3))
    }
    for (let i = 0; i < 5; i++) await publishNext(workspace, compactor, `r${i}`, 'base')
    workspace.clock.pass(HOUR_MS)
    const ledger = await workspace.paths(paths.ledger)
    await workspace.collect(0)
    const left = await workspace.paths()
    for (const name of strange) expect(left).toContain(`${paths.root}${name}`)
    expect(await workspace.paths(paths.ledger)).toEqual(ledger)
    expect((await workspace.view()).manifest.number).toBe(compactor.manifest.number)
  })

  test('of an empty workspace is nothing', async () => {
    expect(await new Workspace().collect(0)).toEqual({ manifests: 0, files: 0, boundary: 0 })
  })
})
