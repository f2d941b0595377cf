import { beforeAll, describe, expect, test } from 'vitest'
import { memoryStore } from '../../../src/adapters/memory/object-store.ts'
import { orchestration } from '../../../src/domain/index.ts'
import { encodeArchive } from '../../../src/engine/ledger/archive-file.ts'
import { Archives } from '../../../src/engine/ledger/archives.ts'
import { encodeSegment, openSegment } from '../../../src/engine/ledger/segment.ts'
import { segmentUlid } from '../../../src/engine/paths.ts'
import { reportFact } from '../../../src/testing/facts.ts'
import { storedRows } from '../../../src/testing/stored-rows.ts'
import { FIRST, packAll, packerOf, publishNext, severalDays } from '../pack/packed-days.ts'
import { paths, scope, TestClock, Workspace } from '../workspace.ts'

/** Two projects of the same days and the same names of tenant and workspace, as all projects on one machine have. */
let mine: Workspace
let theirs: Workspace
/** The days of the other one, in files. */
let theirFiles: Workspace

async function packed(workspace: Workspace): Promise<Workspace> {
  const compactor = await workspace.compactor({ name: 'packs' })
  await packAll(packerOf(workspace, compactor))
  await publishNext(workspace, compactor, reportFact('after'))
  return workspace
}

beforeAll(async () => {
  mine = await packed((await severalDays(4)).workspace)
  const other = (await severalDays(4, new Workspace(memoryStore(), new TestClock(), 77))).workspace
  theirFiles = await other.copy()
  theirs = await packed(other)
})

const archive = paths.archive(FIRST[0], 1)
const rows = (workspace: Workspace) => storedRows(workspace.store, scope, orchestration)

/** Verify and rebuild name these files alone, nothing is folded, and nothing is deleted. */
async function expectRefused(workspace: Workspace, named: readonly string[], message: RegExp): Promise<void> {
  const before = await workspace.digests()
  const verified = await workspace.verify()
  expect(verified.problems.map(({ path }) => path)).toEqual(named)
  for (const problem of verified.problems) {
    expect(problem.message).toMatch(message)
    expect(problem.message).not.toContain('servo rebuild folds it')
  }
  const report = await workspace.rebuild()
  expect(report.problems.map(({ path }) => path)).toEqual(named)
  expect(report).toMatchObject({ order: 'recorded', repaired: [], left: [] })
  expect(await workspace.digests()).toEqual(before)
  expect(await rows(workspace)).toEqual(await rows(mine))
}

describe('an archive of another project', { timeout: 120_000 }, () => {
  test('[S14] in the place of one of this project is named, and none of it is folded', async () => {
    const workspace = await mine.copy()
    await workspace.store.put(archive, (await theirs.store.get(archive))!)
    await expectRefused(workspace, [archive], /is not the archive that the manifest names/)
    await workspace.store.put(archive, (await mine.store.get(archive))!)
    expect(await workspace.verify()).toMatchObject({ ok: true, problems: [], unfolded: [] })
  })

  test('[S14] beside those of this project is named once, and none of it is folded', async () => {
    const workspace = await mine.copy()
    const beside = paths.archive(FIRST[0], 2)
    const archives = new Archives({ store: theirs.store, paths })
    const segments = [...(await archives.segments(archive)).keys()]
    const packed = await Promise.all(segments.map(async (ulid) => ({ ulid, bytes: (await archives.read(ulid))! })))
    await workspace.store.put(beside, await encodeArchive(beside, packed))
    await expectRefused(workspace, [beside], /belongs to another ledger/)
  })

  test('[S14] in the place of one of this project is not folded either by a rebuild that has to fold anew', async () => {
    const workspace = await mine.copy()
    await workspace.store.put(archive, (await theirs.store.get(archive))!)
    for (const path of await workspace.paths(paths.state)) if (path.includes('/_order/')) await workspace.store.delete(path)
    const before = await workspace.digests()
    const left = await workspace.rebuild()
    expect(left.problems.map(({ path }) => path)).toContain(archive)
    expect(left.left.length).toBeGreaterThan(0)
    expect(await workspace.digests()).toEqual(before)
    const report = await workspace.rebuild({ acceptLoss: true })
    const others = (await new Archives({ store: theirs.store, paths }).segments(archive)).size
    const own =
      (await mine.verify({ quick: true })).segments - (await new Archives({ store: mine.store, paths }).segments(archive)).size
    expect(others).toBeGreaterThan(0)
    expect(report).toMatchObject({ order: 'anew', anew_because: 'loss_accepted', segments: own })
    expect((await workspace.verify()).problems.map(({ path }) => path)).toContain(archive)
    // The right one is known again.
    await workspace.store.put(archive, (await mine.store.get(archive))!)
    expect(await workspace.rebuild()).toMatchObject({ problems: [], segments: (await mine.verify({ quick: true })).segments })
    expect(await workspace.verify()).toMatchObject({ ok: true, problems: [], unfolded: [] })
  })
})

describe('a segment', () => {
  test('[S14] of another project in a settled day is named, and not folded', async () => {
    const workspace = await mine.copy()
    const [, second, third] = await theirFiles.paths(paths.day(FIRST[0]))
    for (const path of [second!, third!]) await workspace.store.put(path, (await theirFiles.store.get(path))!)
    await expectRefused(workspace, [second!, third!], /belongs to another ledger/)
  })

  test('[L2] of another workspace is named wherever it lies, and not folded', async () => {
    const [from] = await theirFiles.paths(paths.day(FIRST[0]))
    const { events } = openSegment((await theirFiles.store.get(from!))!, from!, scope)
    const foreign = encodeSegment(
      segmentUlid(from!)!,
      events.map((event) => JSON.stringify({ ...event, workspace_id: 'other' })),
    )
    const late = from!.replace(FIRST[0], '2025-01-19')
    for (const path of [from!, late]) {
      const workspace = await mine.copy()
      await workspace.store.put(path, foreign)
      await expectRefused(workspace, [path], path === from ? /holds events of acme\/other/ : /is not where a segment belongs/)
    }
    const workspace = await mine.copy()
    const beside = paths.archive(FIRST[0], 2)
    await workspace.store.put(beside, await encodeArchive(beside, [{ ulid: segmentUlid(from!)!, bytes: foreign }]))
    await expectRefused(workspace, [beside], /holds events of acme\/other/)
  })
})
