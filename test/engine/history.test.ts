import { describe, expect, test } from 'vitest'
import { memoryStore } from '../../src/adapters/memory/object-store.ts'
import { orchestration } from '../../src/domain/index.ts'
import { runs } from '../../src/domain/runs/runs.table.ts'
import { taskAttempts } from '../../src/domain/tasks/task-attempts.table.ts'
import { tasks } from '../../src/domain/tasks/tasks.table.ts'
import { readHistory } from '../../src/engine/history/entries.ts'
import { PAGE_ENTRIES } from '../../src/engine/manifest/page-list.ts'
import type { Compactor } from '../../src/engine/publish/compactor.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../src/lib/time.ts'
import { historyIndex } from '../../src/model/system-tables.ts'
import { countingStore, type StoreRequest } from '../../src/testing/counting-store.ts'
import { runFacts } from '../../src/testing/facts.ts'
import { storedRows } from '../../src/testing/stored-rows.ts'
import { isFaultTried } from '../tried-faults.ts'
import { Gate, interceptedStore } from './intercepted-store.ts'
import { reachableFrom } from './reachable.ts'
import { paths, scope, Workspace } from './workspace.ts'

/** A quarter of the default, so that fewer publishes are needed. */
const PER_LEVEL = 4
const history = { per_level: PER_LEVEL }

/** Seals one run of a task. */
async function seal(workspace: Workspace, compactor: Compactor, name: string): Promise<string> {
  const { runId, batches } = runFacts(name, { tasks: 1 })
  await workspace.append(...batches.flat())
  await compactor.catchUp()
  await compactor.publish({ kind: 'base' })
  return runId
}

/** The run, its tasks and its attempts, as a compactor or a view finds them. */
async function found(from: Pick<Compactor, 'lookup' | 'history'>, runId: string): Promise<number[]> {
  const ended = from.history
  const place = await from.lookup(historyIndex, 'runs', runId)
  const [run, its, attempts] = await Promise.all([
    ended.rowsOf(runs, runId, place),
    ended.rowsOf(tasks, runId, place),
    ended.rowsOf(taskAttempts, runId, place),
  ])
  return [run.length, its.length, attempts.length]
}

const WHOLE = [1, 1, 1]

async function entriesOf(workspace: Workspace, compactor: Compactor): Promise<[first: number, last: number][]> {
  const spans: [number, number][] = []
  for await (const { first, publish } of readHistory(workspace.store, compactor.manifest))
    spans.push([first ?? publish, publish])
  return spans
}

describe('history', { timeout: 180_000 }, () => {
  test('[S1] of a day is merged in levels: after any number of publishes there are few files, and every run is found', async () => {
    const workspace = new Workspace()
    const compactor = await workspace.compactor({ history })
    const ids: string[] = []
    for (let i = 1; i <= PER_LEVEL ** 2 + PER_LEVEL + 2; i++) ids.push(await seal(workspace, compactor, `r${i}`))
    expect(await entriesOf(workspace, compactor)).toEqual([
      [1, 16],
      [17, 20],
      [21, 21],
      [22, 22],
    ])
    for (const id of ids) expect(await found(compactor, id)).toEqual(WHOLE)
    workspace.clock.pass(HOUR_MS)
    await workspace.collect(0)
    expect(await workspace.paths(`${paths.state}tasks/history/`)).toHaveLength(4)
    expect(await workspace.verify()).toMatchObject({ problems: [], relaid: [] })
  })

  test('[S1][S10] of a day that is over is one entry, and so is a part of a day that is full; both leave the manifest for good', async () => {
    const workspace = new Workspace()
    const compactor = await workspace.compactor({ history: { full_rows: 36 } })
    const sizes: number[] = []
    for (let day = 0; day < 3; day++) {
      for (let i = 0; i < 15; i++) {
        await seal(workspace, compactor, `r${day}-${i}`)
        sizes.push(compactor.manifest.open_history?.length ?? 0)
      }
      workspace.clock.pass(DAY_MS - HOUR_MS)
    }
    // A sealed run of one task has four rows: nine of them fill an entry.
    expect(await entriesOf(workspace, compactor)).toEqual([
      [1, 9],
      [10, 15],
      [16, 24],
      [25, 30],
      [31, 39],
      ...[40, 41, 42, 43, 44, 45].map((publish) => [publish, publish]),
    ])
    // The ninth closes the entry.
    expect(Math.max(...sizes)).toBe(8)
    expect(await workspace.verify()).toMatchObject({ problems: [], relaid: [] })
  })

  test('[S13] of a run costs the reads of that run, however many publishes there were', async () => {
    const counting = countingStore(memoryStore())
    const workspace = new Workspace(counting)
    const compactor = await workspace.compactor({ history: { full_rows: 45 } })
    const reads: number[] = []
    for (let i = 1; i <= 100; i++) {
      const id = await seal(workspace, compactor, `r${i}`)
      if (i % 50 !== 0) continue
      const view = await workspace.view()
      counting.reset()
      expect(await found(view, id)).toEqual(WHOLE)
      reads.push(counting.count('get') + counting.count('getRange'))
    }
    // Footer and row group of a file for each of three tables, and what it takes to look the run up in the index of history.
    expect(Math.max(...reads)).toBeLessThanOrEqual(6 + 3 * 3 * 2)
  })

  test('[S13] that is just being sealed is found: in memory until the manifest names its files', async () => {
    const workspace = new Workspace()
    const gate = new Gate(({ method, path }) => method === 'create' && path === paths.manifest(2))
    const compactor = await workspace.compactor({ store: interceptedStore(workspace.store, gate.before) })
    const { runId, batches } = runFacts('r', { tasks: 1 })
    await workspace.append(...batches.flat())
    await compactor.catchUp()
    const publishing = compactor.publish({ kind: 'base' })
    await gate.arrived
    expect(compactor.state.hot(runs).get(runId)).toBeUndefined()
    expect(await found(compactor, runId)).toEqual(WHOLE)
    expect(await compactor.history.list(runs, { limit: 5 })).toHaveLength(1)
    const before = compactor.history
    gate.open()
    await publishing
    expect(await found(compactor, runId)).toEqual(WHOLE)
    expect(await before.list(runs, { limit: 5 }), 'as of its moment').toHaveLength(1)
    expect(await compactor.history.list(runs, { limit: 5 })).toHaveLength(1)
  })

  test('[I1][V4] a process that dies at any request of a base that merges history loses nothing, and what it left is removed', async () => {
    const start = new Workspace()
    const first = await start.compactor({ history, name: 'first' })
    const ids: string[] = []
    for (let i = 1; i < PER_LEVEL; i++) ids.push(await seal(start, first, `r${i}`))
    const last = runFacts('last', { tasks: 1 })
    await start.append(...last.batches.flat())
    ids.push(last.runId)
    const rows = async (workspace: Workspace) => await storedRows(workspace.store, scope, orchestration)
    const publishing = async (workspace: Workspace, before: (request: StoreRequest) => Promise<void> | void) => {
      const compactor = await workspace.compactor({ history, name: 'second', store: interceptedStore(workspace.store, before) })
      await compactor.catchUp()
      await compactor.publish({ kind: 'base' })
    }
    const requests: StoreRequest[] = []
    const whole = await start.copy()
    await publishing(whole, (request) => void requests.push(request))
    expect(
      requests.some(({ path }) => /\/history\/.*-1\.parquet$/.test(path)),
      'it merges',
    ).toBe(true)
    const expected = await rows(whole)

    for (const [nth, { method, path }] of requests.entries()) {
      // Between two writes it can die wherever it likes: nobody sees a difference.
      if (method.startsWith('get') || method === 'list' || !isFaultTried()) continue
      const context = `died before request ${nth}, ${method} ${path}`
      const workspace = await start.copy()
      let count = 0
      const dying = publishing(workspace, () => {
        if (count++ >= nth) throw new Error('died')
      })
      // Whether it had published before it died does not matter.
      await dying.catch(() => undefined)
      const next = await workspace.compactor({ history, name: 'next' })
      await next.catchUp()
      await next.publish({ kind: 'base' })
      for (const id of ids) expect(await found(next, id), context).toEqual(WHOLE)
      expect(await rows(workspace), context).toEqual(expected)
      workspace.clock.pass(HOUR_MS)
      await workspace.collect(0)
      // A replay takes longest: of one in three.
      const quick = nth % 3 > 0
      expect(await workspace.verify({ quick }), context).toMatchObject({ problems: [], relaid: [], unfolded: [] })
      expect(new Set(await workspace.paths(paths.state)), context).toEqual(await reachableFrom(workspace.store, next.manifest))
    }
  })

  test('[S9] that was merged stays for readers of the manifest that they hold, as long as it is kept', async () => {
    const workspace = new Workspace()
    const compactor = await workspace.compactor({ history })
    const ids: string[] = []
    for (let i = 1; i < PER_LEVEL; i++) ids.push(await seal(workspace, compactor, `r${i}`))
    const reader = await workspace.view()
    workspace.clock.pass(MINUTE_MS)
    await seal(workspace, compactor, 'merges')
    expect(await entriesOf(workspace, compactor)).toHaveLength(1)
    await workspace.collect(10 * MINUTE_MS)
    for (const id of ids) expect(await found(reader, id)).toEqual(WHOLE)
    expect(await reader.history.list(runs, { limit: 100 })).toHaveLength(PER_LEVEL - 1)
  })

  test('[S9] that closes a day is not taken for garbage before its manifest is written', async () => {
    const workspace = new Workspace()
    const first = await workspace.compactor({ history: { full_rows: 1 } })
    const ids: string[] = []
    for (let i = 1; i < PAGE_ENTRIES; i++) ids.push(await seal(workspace, first, `r${i}`))
    const second = await workspace.compactor({ history })
    for (const name of ['a', 'b']) ids.push(await seal(workspace, second, name))
    workspace.clock.pass(DAY_MS)
    // The next base merges the two, and fills a page of the list with that.
    const gate = new Gate(({ method, path }) => method === 'create' && path === paths.manifest(second.manifest.number + 2))
    const third = await workspace.compactor({ history, store: interceptedStore(workspace.store, gate.before) })
    const sealing = seal(workspace, third, 'next day')
    await gate.arrived
    await workspace.collect(0)
    gate.open()
    ids.push(await sealing)
    expect(third.manifest.history.levels.map((level) => level.length)).toEqual([0, 1])
    for (const id of ids) expect(await found(third, id)).toEqual(WHOLE)
    await reachableFrom(workspace.store, third.manifest)
    expect((await workspace.verify()).problems).toEqual([])
  })

  test('[S9] of many days keeps all its pages, those that garbage collection no longer looks at included', async () => {
    const workspace = new Workspace()
    const compactor = await workspace.compactor()
    // A collection looks at 256 entries. Of one more page of them, the oldest was written with the first entry of the next.
    for (let day = 0; day <= PAGE_ENTRIES ** 2 + PAGE_ENTRIES; day++) {
      await workspace.append(...runFacts(`r${day}`, { tasks: 0 }).batches.flat())
      await compactor.catchUp()
      await compactor.publish({ kind: 'base' })
      workspace.clock.pass(DAY_MS)
    }
    await workspace.collect(0)
    await reachableFrom(workspace.store, compactor.manifest)
    expect(await compactor.history.list(runs, { limit: 1_000 })).toHaveLength(PAGE_ENTRIES ** 2 + PAGE_ENTRIES + 1)
  })

  test('[S13] of a run whose file is damaged is refused, and the error names the file', async () => {
    const workspace = new Workspace()
    const compactor = await workspace.compactor({ history })
    const id = await seal(workspace, compactor, 'r')
    const [path] = await workspace.paths(`${paths.state}tasks/history/`)
    const bytes = (await workspace.store.get(path!))!
    for (let at = 4; at < bytes.length; at += 97) {
      await workspace.store.put(path!, bytes.with(at, bytes[at]! ^ 4))
      await expect(found(await workspace.view(), id), `byte ${at}`).rejects.toMatchObject({ kind: 'corrupt', facts: { path } })
    }
  })

  test('[S13] that retention has dropped is not there any more: neither by id nor in a list', async () => {
    const workspace = new Workspace()
    const compactor = await workspace.compactor({ retention: { runs: 3, tasks: 3, idempotency_keys: 31 } })
    const ids: string[] = []
    for (let day = 0; day < 6; day++) {
      ids.push(await seal(workspace, compactor, `r${day}-a`), await seal(workspace, compactor, `r${day}-b`))
      workspace.clock.pass(DAY_MS - HOUR_MS)
    }
    await workspace.append(...runFacts('last', { tasks: 0 }).batches.flat())
    await compactor.catchUp()
    await compactor.publish({ kind: 'base' })
    workspace.clock.pass(HOUR_MS)
    await workspace.collect(0)
    const view = await workspace.view()
    const listed = (await view.history.list(runs, { limit: 100 })).map(({ run_id }) => run_id)
    expect(listed.length).toBeGreaterThan(4)
    expect(listed.length).toBeLessThan(10)
    for (const id of ids) {
      const isListed = listed.includes(id)
      expect(await found(view, id)).toEqual(isListed ? WHOLE : [0, 0, 1])
      const place = await view.lookup(historyIndex, 'runs', id)
      expect(view.history.isDropped(runs, place!.publish)).toBe(!isListed)
    }
    expect((await workspace.verify()).problems).toEqual([])
    expect(new Set(await workspace.paths(paths.state))).toEqual(await reachableFrom(workspace.store, view.manifest))
  })
})

describe('history of an earlier version, which was not merged', () => {
  /** Publishes as that version did: by repeating a recorded publish that has no rule for history. */
  async function earlier(count: number): Promise<{ workspace: Workspace; ids: string[] }> {
    const workspace = new Workspace()
    const modern = await workspace.compactor({ history })
    const ids: string[] = []
    for (let i = 0; i < count; i++) {
      const { runId, batches } = runFacts(`old-${i}`, { tasks: 1 })
      ids.push(runId)
      await workspace.append(...batches.flat())
      await modern.catchUp()
      const { manifest } = modern
      await modern.replay({
        publish: manifest.publish + 1,
        epoch: Math.max(1, manifest.epoch),
        kind: 'base',
        published_at: new Date(workspace.clock.now()).toISOString(),
        segments: [],
        retention: { idempotency_keys: 31 },
      })
    }
    return { workspace, ids }
  }

  test('[S13] is read as before, verified, and followed by history that is', async () => {
    const { workspace, ids } = await earlier(20)
    const old = (await workspace.paths(`${paths.state}runs/history/`)).length
    expect(old).toBe(20)
    const compactor = await workspace.compactor({ history })
    expect(compactor.manifest.open_history).toBeUndefined()
    for (let i = 0; i < PER_LEVEL; i++) ids.push(await seal(workspace, compactor, `new-${i}`))
    expect(await entriesOf(workspace, compactor)).toHaveLength(21)
    for (const id of ids) expect(await found(compactor, id)).toEqual(WHOLE)
    const listed = (await compactor.history.list(runs, { limit: 100 })).map(({ run_id }) => run_id)
    expect(listed).toEqual(ids.toReversed())
    expect((await compactor.history.list(runs, { limit: 10 })).map(({ run_id }) => run_id)).toEqual(listed.slice(0, 10))
    expect(await workspace.verify()).toMatchObject({ problems: [], relaid: [] })
    await workspace.store.delete((await workspace.paths(`${paths.state}tasks/history/`))[3]!)
    expect(await workspace.rebuild()).toMatchObject({ order: 'recorded', problems: [] })
    expect((await workspace.verify()).problems).toEqual([])
  })
})
