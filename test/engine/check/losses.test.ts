import { beforeAll, describe, expect, test } from 'vitest'
import { orchestration } from '../../../src/domain/index.ts'
import { reportFact, runFacts } from '../../../src/testing/facts.ts'
import { ScriptedLease } from '../../../src/testing/scripted-lease.ts'
import { storedRows } from '../../../src/testing/stored-rows.ts'
import { FIRST, packAll, packerOf, publishNext, severalDays } from '../pack/packed-days.ts'
import { paths, scope, type Workspace } from '../workspace.ts'

/** Several packed days, and a day with deltas: the rows of the first days are in files that need nothing of the ledger. */
let sound: Workspace
let kept: string | undefined
beforeAll(async () => {
  sound = (await severalDays(4)).workspace
  const lease = new ScriptedLease()
  const compactor = await sound.compactor({ name: 'packs', lease })
  await packAll(packerOf(sound, compactor, { lease }))
  await publishNext(sound, compactor, reportFact('after'))
  for (const name of ['one', 'two']) {
    await sound.appendAll(runFacts(name, { tasks: 1 }).batches)
    await compactor.catchUp()
    await compactor.publish()
  }
  kept = lease.kept
})

const archive = paths.archive(FIRST[0], 1)
const rows = (workspace: Workspace) => storedRows(workspace.store, scope, orchestration)

async function flip(workspace: Workspace, path: string): Promise<void> {
  const bytes = (await workspace.store.get(path))!
  const at = bytes.length >> 1
  await workspace.store.put(path, bytes.with(at, bytes[at]! ^ 1))
}

async function filesWith(workspace: Workspace, text: string): Promise<string[]> {
  const manifest = (await workspace.manifests()).at(-1)!
  return (await workspace.paths(paths.state)).filter((path) => path.includes(text) && JSON.stringify(manifest).includes(path))
}

describe('a rebuild of which the ledger has lost segments', { timeout: 120_000 }, () => {
  test('[S16] mends a table that needs none of them, and every row is still there', async () => {
    const workspace = await sound.copy()
    const before = await workspace.digests(paths.state)
    const [table] = await filesWith(workspace, '/tasks/l0/')
    await flip(workspace, archive)
    await flip(workspace, table!)
    const report = await workspace.rebuild()
    expect(report).toMatchObject({ order: 'recorded', anew_because: null, repaired: [table], left: [] })
    expect(report.problems.map(({ path }) => path)).toEqual([archive])
    expect(await workspace.digests(paths.state)).toEqual(before)
    expect(await rows(workspace)).toEqual(await rows(sound))
  })

  test.each<[string, (workspace: Workspace) => Promise<string[]>]>([
    [
      'a table that needs them is damaged',
      async (workspace) => (await filesWith(workspace, '/partition_status/runs/')).slice(0, 1),
    ],
    [
      'the recorded order is damaged',
      async (workspace) => (await workspace.paths(paths.state)).filter((path) => path.includes('/_order/')).slice(0, 1),
    ],
    [
      'the newest manifest and its copy are damaged',
      async (workspace) => [(await workspace.paths(paths.manifests)).at(-1)!, paths.manifestCopy],
    ],
  ])('[S16] deletes and publishes nothing where %s, names both, and goes on from a backup', async (_, damagedIn) => {
    const workspace = await sound.copy()
    const damaged = await damagedIn(workspace)
    expect(damaged.length).toBeGreaterThan(0)
    await flip(workspace, archive)
    for (const path of damaged) await flip(workspace, path)
    const before = await workspace.digests()
    const lease = new ScriptedLease()
    lease.kept = kept
    const report = await workspace.rebuild({ lease })
    expect(report.problems.map(({ path }) => path)).toContain(archive)
    expect(report).toMatchObject({ order: 'recorded', repaired: [] })
    expect(report.left.map(({ path }) => path)).toEqual(expect.arrayContaining(damaged.slice(0, 1)))
    expect(await workspace.digests()).toEqual(before)
    expect(lease.kept, 'what the lease remembers').toBe(kept)

    await workspace.store.put(archive, (await sound.store.get(archive))!)
    expect(await workspace.rebuild({ lease })).toMatchObject({ problems: [], left: [] })
    expect(await workspace.verify()).toMatchObject({ ok: true, problems: [], unfolded: [] })
    expect((await rows(workspace))['runs']).toEqual((await rows(sound))['runs'])
  })

  test('[S16] folds what is left if it is told to, and what was lost is folded once it is restored', async () => {
    const workspace = await sound.copy()
    const [table] = await filesWith(workspace, '/partition_status/runs/')
    await workspace.store.delete(archive)
    await flip(workspace, table!)
    const report = await workspace.rebuild({ acceptLoss: true })
    expect(report).toMatchObject({ order: 'anew', anew_because: 'loss_accepted', left: [] })
    expect((await workspace.verify()).problems.map(({ path }) => path)).toContain(archive)
    await workspace.store.put(archive, (await sound.store.get(archive))!)
    expect(await workspace.rebuild()).toMatchObject({ problems: [], left: [] })
    expect(await workspace.verify()).toMatchObject({ ok: true, problems: [], unfolded: [] })
  })

  test.each<[string, (workspace: Workspace) => Promise<void>]>([
    ['missing', (workspace) => workspace.store.delete(archive)],
    ['damaged', (workspace) => flip(workspace, archive)],
  ])('[S14] names an archive that is %s once, as verify does, however many segments it had', async (_, harm) => {
    const workspace = await sound.copy()
    await harm(workspace)
    expect((await workspace.verify()).problems.map(({ path }) => path)).toEqual([archive])
    expect((await workspace.rebuild()).problems.map(({ path }) => path)).toEqual([archive])
    const [table] = await filesWith(workspace, '/partition_status/runs/')
    await flip(workspace, table!)
    const { problems } = await workspace.rebuild({ acceptLoss: true })
    expect(new Set(problems.map(({ message }) => message)).size).toBe(problems.length)
    expect(problems.filter(({ message }) => message.includes(archive))).toHaveLength(1)
  })
})

test('[S14] a damaged part of the recorded order is named alone: no segment of a settled day is called late', async () => {
  const workspace = await sound.copy()
  const [order] = (await workspace.paths(paths.state)).filter((path) => path.includes('/_order/'))
  await flip(workspace, order!)
  expect((await workspace.verify()).problems.map(({ path }) => path)).toEqual([order])
})
