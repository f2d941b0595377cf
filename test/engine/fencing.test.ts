import { beforeAll, describe, expect, test } from 'vitest'
import type { VerifyReport } from '../../src/engine/check/verify.ts'
import type { Compactor } from '../../src/engine/publish/compactor.ts'
import { isServoError } from '../../src/lib/error.ts'
import { HOUR_MS } from '../../src/lib/time.ts'
import { countingStore, type StoreRequest } from '../../src/testing/counting-store.ts'
import { reportFact, runFacts } from '../../src/testing/facts.ts'
import { faultyStore, scriptedFaults } from '../../src/testing/faulty-store.ts'
import { isFaultTried } from '../tried-faults.ts'
import { Gate, interceptedStore } from './intercepted-store.ts'
import { reachableFrom } from './reachable.ts'
import { paths, Workspace } from './workspace.ts'

/** A workspace whose next base merges eight sorted files into one, seals a run, and removes alarms. */
async function prepared(): Promise<Workspace> {
  const workspace = new Workspace()
  const compactor = await workspace.compactor({ name: 'first' })
  for (let i = 0; i < 7; i++) {
    await workspace.append(reportFact(`report-${i}`))
    await compactor.catchUp()
    await compactor.publish({ kind: 'base' })
  }
  const { batches } = runFacts('r', { tasks: 1 })
  await workspace.append(...batches.slice(0, -1).flat())
  await compactor.catchUp()
  await compactor.publish({ kind: 'delta' })
  await workspace.append(...batches.at(-1)!, reportFact('last'))
  return workspace
}

/** A hundred small worlds, each replayed: some ten seconds, and several times that on a machine that has other work. */
const PATIENCE_MS = 180_000

let start: Workspace
beforeAll(async () => {
  start = await prepared()
})

/** What must hold after anything: verify is clean, epochs rose, and the newest manifest leads only to what is there. */
async function expectUnharmed(workspace: Workspace, context: string, options: { quick?: boolean } = {}): Promise<VerifyReport> {
  const report = await workspace.verify(options)
  expect(report.problems, context).toEqual([])
  expect(report.relaid, context).toEqual([])
  const manifests = await workspace.manifests()
  for (const [i, manifest] of manifests.entries()) {
    if (i > 0) expect(manifest.epoch, context).toBeGreaterThanOrEqual(manifests[i - 1]!.epoch)
    await reachableFrom(workspace.store, manifest)
  }
  return report
}

/** Folds everything, publishes, collects; nothing may be left that the newest manifest does not lead to. */
async function expectRecovers(workspace: Workspace, context: string): Promise<void> {
  await expectUnharmed(workspace, context)
  const next = await workspace.compactor({ name: 'recovery' })
  await next.catchUp()
  await workspace.append(reportFact('recovery'))
  await next.catchUp()
  await next.publish({ kind: 'base' })
  workspace.clock.pass(HOUR_MS)
  await workspace.collect(0)
  const report = await expectUnharmed(workspace, context)
  expect(report, context).toMatchObject({ ok: true, unfolded: [] })
  const reachable = await reachableFrom(workspace.store, next.manifest)
  expect(new Set(await workspace.paths(paths.state)), `${context}: [V4] no orphan is left`).toEqual(reachable)
}

/** Between two of these a process can die or be stopped wherever it likes: nobody sees a difference. */
const writes = ({ method }: StoreRequest): boolean => method === 'create' || method === 'put' || method === 'delete'

/** Publishes while the requests go through `before`, as a process of its own would. */
async function publishing(
  workspace: Workspace,
  kind: 'delta' | 'base',
  before: (request: StoreRequest) => Promise<void> | void,
): Promise<Compactor> {
  const compactor = await workspace.compactor({ name: 'second', store: interceptedStore(workspace.store, before) })
  await compactor.catchUp()
  await compactor.publish({ kind })
  return compactor
}

async function requestsOf(kind: 'delta' | 'base'): Promise<StoreRequest[]> {
  const requests: StoreRequest[] = []
  await publishing(await start.copy(), kind, (request) => void requests.push(request))
  return requests
}

describe.each(['delta', 'base'] as const)('a process that publishes a %s', { timeout: PATIENCE_MS }, (kind) => {
  test('[S8][I1][I6][V4] and dies at any of its requests leaves nothing but orphans, and those are reclaimed', async () => {
    const requests = await requestsOf(kind)
    expect(requests.filter(writes).length).toBeGreaterThan(10)
    for (const [nth, dying] of requests.entries()) {
      if (!writes(dying) || !isFaultTried()) continue
      const workspace = await start.copy()
      let count = 0
      // A gate that never opens: what comes after it is for ever about to happen.
      const death = new Gate(() => count++ >= nth)
      void publishing(workspace, kind, death.before)
      await death.arrived
      await expectRecovers(workspace, `killed before request ${nth}, ${dying.method} ${dying.path}`)
    }
  })

  test.each(['lost', 'unanswered'] as const)(
    '[S8][I1][I6] whose request number k is %s, for any k, loses nothing when it tries again',
    async (outcome) => {
      const requests = await requestsOf(kind)
      for (const [k, failing] of requests.entries()) {
        // To whoever reads, an answer that is lost and a question that is lost are one.
        if ((outcome === 'unanswered' && !writes(failing)) || !isFaultTried()) continue
        const workspace = await start.copy()
        let count = 0
        const store = faultyStore(workspace.store, () => (count++ === k ? { outcome } : undefined))
        const context = `request ${k}, ${failing.method} ${failing.path}, is ${outcome}`
        const insist = async <T>(work: () => Promise<T>): Promise<T> =>
          await work().catch(async (error: unknown) => {
            expect(isServoError(error, 'unavailable'), `${context}: ${String(error)}`).toBe(true)
            return await work()
          })
        let compactor = await insist(() => workspace.compactor({ name: 'second', store }))
        await insist(() => compactor.catchUp())
        const published = await insist(async () => await compactor.publish({ kind })).catch(async (error: unknown) => {
          // A base that could not read what it merges has given up its rows: it says so until somebody opens the state anew.
          expect(error, context).toMatchObject({ kind: 'unavailable', code: 'publish_failed' })
          await expect(compactor.catchUp()).rejects.toBe(error)
          await expect(compactor.fold.apply([])).rejects.toBe(error)
          compactor = await workspace.compactor({ name: 'third' })
          await compactor.catchUp()
          return await compactor.publish({ kind })
        })
        expect(published, context).toBe('published')
        expect(compactor.manifest.watermarks.segments, context).toBe((await workspace.paths(paths.ledger)).length)
        // A request that only reads can spoil nothing but the process that made it: a replay of one in five will do.
        await expectUnharmed(workspace, context, { quick: !writes(failing) && k % 5 > 0 })
      }
    },
  )

  test('[S4][S9][I4][I5][I6] and is overtaken at any of its requests does no harm when it goes on, collected numbers or not', async () => {
    const requests = await requestsOf(kind)
    const takeover = requests.findIndex(({ path }) => path === paths.boundaries)
    for (const [nth, paused] of requests.entries()) {
      // Of the many reads in a row that open the state, some will do.
      if (!writes(paused) && paused.path !== paths.boundaries && nth % 4 > 0) continue
      if (!isFaultTried()) continue
      const workspace = await start.copy()
      const collected = nth % 3 > 0
      let count = 0
      const gate = new Gate(() => count++ === nth)
      const context = `paused before request ${nth}, ${paused.method} ${paused.path}`
      const frozen = publishing(workspace, kind, gate.before).then(
        () => 'published',
        (error: unknown) => error,
      )
      await gate.arrived
      const rival = await workspace.compactor({ name: 'rival' })
      for (let i = 0; i < 3; i++) {
        await workspace.append(reportFact(`rival-${i}`))
        await rival.catchUp()
        await rival.publish({ kind: i === 1 ? 'base' : 'delta' })
        workspace.clock.pass(HOUR_MS)
        if (collected) await workspace.collect(0)
      }
      gate.open()
      const outcome = await frozen
      // Who had read nothing yet is not overtaken: it opens the newest state. The others find the number taken or passed.
      const opening = isServoError(outcome, 'corrupt') && outcome.code === 'file_missing' && paused.path.includes('/state/')
      const fenced = isServoError(outcome, 'conflict') && outcome.code === 'fenced'
      expect(outcome === 'published' || fenced || opening, `${context}: ${String(outcome)}`).toBe(true)
      if (paused.method === 'create') expect(fenced, `${context}: ${String(outcome)}`).toBe(true)
      // Here its manifest stands already and is a version like any other, until it is collected. The first one is the takeover, after
      // which it finds the number of its publish taken.
      if (paused.path === paths.boundaries) expect(fenced, context).toBe(collected || nth === takeover)
      await expectUnharmed(workspace, context)
    }
  })
})

test('[S3][I5] of any number of compactors that publish at once one wins each number, and the others are of no use any more', async () => {
  const workspace = await start.copy()
  const rivals = await Promise.all(Array.from({ length: 6 }, (_, i) => workspace.compactor({ name: `rival-${i}` })))
  const outcomes = await Promise.allSettled(
    rivals.map(async (rival) => {
      await rival.catchUp()
      return await rival.publish()
    }),
  )
  expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
  for (const [i, outcome] of outcomes.entries()) {
    if (outcome.status === 'fulfilled') continue
    expect(outcome.reason).toMatchObject({
      kind: 'conflict',
      code: 'fenced',
      hint: expect.stringMatching(/Open the state again/),
    })
    await expect(rivals[i]!.publish()).rejects.toBe(outcome.reason)
    await expect(rivals[i]!.catchUp()).rejects.toBe(outcome.reason)
  }
  await expectUnharmed(workspace, 'after the race')
})

test('[S3][I1] two compactors of one name at one moment, which take each other for themselves, still lose nothing', async () => {
  const workspace = await start.copy()
  const twins = [await workspace.compactor({ name: 'twin' }), await workspace.compactor({ name: 'twin' })]
  for (let round = 0; round < 3; round++) {
    for (const [i, twin] of twins.entries()) {
      await workspace.append(reportFact(`twin-${round}-${i}`))
      await twin.catchUp().catch(() => undefined)
      await twin.publish().catch(() => undefined)
    }
  }
  await expectRecovers(workspace, 'after the twins')
})

describe('a manifest whose creation has an unknown outcome', () => {
  test.each(['unanswered', 'repeated', 'lost'] as const)(
    '[S3] (%s) is ours if it is there, claims as well as publishes',
    async (outcome) => {
      for (const nth of [1, 2]) {
        const workspace = await start.copy()
        const store = faultyStore(workspace.store, scriptedFaults([{ method: 'create', path: paths.manifests, nth, outcome }]))
        const compactor = await workspace.compactor({ store })
        await compactor.catchUp()
        const before = compactor.manifest.number
        const published = await compactor.publish().catch(() => {
          // What is tried again says the same, although it is later now.
          workspace.clock.pass(1_000)
          return compactor.publish()
        })
        expect(published).toBe('published')
        expect(compactor.manifest.number).toBe(before + 2)
        await expectUnharmed(workspace, `manifest ${nth} ${outcome}`)
      }
    },
  )
})

test('[S9][I5] a manifest that an overtaken compactor created at a freed number, dying before it noticed, is no version of anything', async () => {
  const workspace = await start.copy()
  const counting = countingStore(workspace.store)
  let created = false
  const gate = new Gate(({ method, path }) => method === 'create' && path.startsWith(paths.manifests) && !created)
  const frozen = publishing(workspace, 'delta', async (request) => {
    await gate.before(request)
    if (created) throw new Error('killed')
    if (request.method === 'create' && request.path.startsWith(paths.manifests)) created = true
  })
  const { path } = await gate.arrived
  const rival = await workspace.compactor({ name: 'rival', store: counting })
  for (let i = 0; i < 3; i++) {
    await workspace.append(reportFact(`rival-${i}`))
    await rival.catchUp()
    await rival.publish({ kind: 'base' })
    workspace.clock.pass(HOUR_MS)
    await workspace.collect(0)
  }
  gate.open()
  await expect(frozen).rejects.toThrow('killed')
  expect(await workspace.store.get(path), 'the number was free').toBeDefined()

  // It names files that were collected long ago; nobody may believe it.
  const report = await workspace.verify()
  expect(report.problems).toEqual([])
  expect((await workspace.view()).manifest.number).toBe(rival.manifest.number)
  await workspace.collect(24 * HOUR_MS)
  expect(await workspace.store.get(path)).toBeUndefined()
  await expectRecovers(workspace, 'after the collection')
})
