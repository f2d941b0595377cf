import { expect, test } from 'vitest'
import type { Segment } from '../../src/engine/ledger/segment.ts'
import { countingStore } from '../../src/testing/counting-store.ts'
import { reportFact, runFacts } from '../../src/testing/facts.ts'
import { fullState } from './full-state.ts'
import { interceptedStore } from './intercepted-store.ts'
import { paths, Workspace } from './workspace.ts'

/** As long as a bucket takes to answer anything, and no longer however much is asked at once: what counts is what waits for what. */
class Rounds {
  count = 0
  #waiting: (() => void)[] = []

  readonly before = async (): Promise<void> =>
    await new Promise<void>((resolve) => {
      if (this.#waiting.push(resolve) > 1) return
      setImmediate(() => {
        this.count += 1
        for (const answer of this.#waiting.splice(0)) answer()
      })
    })
}

async function roundsOf(workspace: Workspace, work: (slow: Workspace) => Promise<unknown>): Promise<number> {
  const rounds = new Rounds()
  await work(new Workspace(interceptedStore(workspace.store, rounds.before), workspace.clock, 3))
  return rounds.count
}

test('the rounds of a reader are those that wait for each other', async () => {
  const workspace = new Workspace()
  expect(
    await roundsOf(workspace, async (slow) => await Promise.all([slow.store.get('a'), slow.store.get('b'), slow.paths()])),
  ).toBe(1)
  const inTurn = async (slow: Workspace): Promise<void> => {
    await slow.store.get('a')
    await slow.store.size('b')
  }
  expect(await roundsOf(workspace, inTurn)).toBe(2)
})

test('a compactor and a view are open after at most four rounds, whatever there is to read', async () => {
  const empty = new Workspace()
  const full = await fullState({ paged: true })
  // Facts that came too early wait in memory; what they read is looked up when something is folded, not before.
  const early = await full.copy()
  const waiting = await early.compactor()
  await early.append(...runFacts('not requested yet').batches.slice(1).flat())
  await waiting.catchUp()
  await waiting.publish()
  await early.append(...runFacts('nor this one').batches.slice(1).flat())
  await waiting.catchUp()
  await waiting.publish()
  expect((await early.verify()).parked).toBeGreaterThan(10)
  for (const workspace of [empty, full, early]) {
    expect(await roundsOf(workspace, (slow) => slow.compactor())).toBeLessThanOrEqual(4)
    expect(await roundsOf(workspace, (slow) => slow.view())).toBeLessThanOrEqual(4)
  }
  expect(await roundsOf(full, (slow) => slow.compactor()), 'listing, manifest, files').toBe(3)
})

test('an opened compactor folds an announced segment without any request, and finds an unannounced one in two rounds', async () => {
  const full = await fullState({ paged: true })
  const rounds = new Rounds()
  const slow = new Workspace(interceptedStore(full.store, rounds.before), full.clock, 3)
  const compactor = await slow.compactor()
  await compactor.catchUp()
  const announced: Segment[] = []
  await full
    .ledger({ onDurable: (segment) => announced.push(segment) })
    .append(runFacts('unfinished', { tasks: 2 }).batches[6]!)
  rounds.count = 0
  expect((await compactor.fold.apply(announced)).size).toBe(2)
  expect(rounds.count).toBe(0)
  await full.append(...runFacts('unfinished', { tasks: 2 }).batches[7]!)
  expect(await compactor.catchUp()).toBe(1)
  expect(rounds.count).toBe(2)
})

test('nothing is asked of the store when nothing happens', async () => {
  const counting = countingStore((await fullState({ paged: false })).store)
  const workspace = new Workspace(counting)
  const compactor = await workspace.compactor()
  await compactor.catchUp()
  counting.reset()
  for (let i = 0; i < 10; i++) expect(await compactor.publish()).toBe('nothing')
  expect(counting.count()).toBe(0)
  expect(counting.pathsUnder(paths.root)).toEqual([])
  await workspace.append(reportFact('something'))
  // Another process than the leader looks which days are closed, and after each write whether its own was.
  expect(counting.requests.map(({ method }) => method)).toEqual(['list', 'get', 'create', 'list'])
  counting.reset()
  await workspace.append(reportFact('something else'))
  expect(counting.count()).toBe(2)
})
