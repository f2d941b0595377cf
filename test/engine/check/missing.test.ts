import { beforeAll, describe, expect, test } from 'vitest'
import { memoryStore } from '../../../src/adapters/memory/object-store.ts'
import { orchestration } from '../../../src/domain/index.ts'
import type { Damage } from '../../../src/engine/ledger/read-segment.ts'
import { Loop } from '../../../src/engine/loop/loop.ts'
import { ulidSource } from '../../../src/lib/ulid.ts'
import { reportFact } from '../../../src/testing/facts.ts'
import { ScriptedLease } from '../../../src/testing/scripted-lease.ts'
import { seededBytes } from '../../../src/testing/seeded-bytes.ts'
import { storedRows } from '../../../src/testing/stored-rows.ts'
import { VirtualClock } from '../../../src/testing/virtual-clock.ts'
import { filesOf, fullState } from '../full-state.ts'
import { paths, scope, Workspace } from '../workspace.ts'

const garbage = new TextEncoder().encode('garbage')
const MANIFESTS = 'newest manifest and older ones'

/** A state, what its last leader kept with the lease, and segments that no manifest covers yet. */
interface Left {
  readonly workspace: Workspace
  readonly kept: string | undefined
  readonly tail: readonly string[]
}

let left: Left
beforeAll(async () => {
  const workspace = await fullState({ paged: false })
  const lease = new ScriptedLease()
  const compactor = await workspace.compactor({ lease })
  await workspace.append(reportFact('published'))
  await compactor.catchUp()
  await compactor.publish()
  const tail: string[] = []
  for (const name of ['one', 'two', 'three']) tail.push(paths.segment((await workspace.append(reportFact(name))).segment))
  left = { workspace, kept: lease.kept, tail }
})

const copyOfLeft = async (): Promise<Left> => ({ ...left, workspace: await left.workspace.copy() })

async function problems({ workspace, kept }: Left): Promise<string[]> {
  const report = await workspace.verify({ kept })
  expect(report.ok).toBe(report.problems.length === 0)
  return report.problems.map(({ path }) => path)
}

/** Rebuilds as the command does, with a lease. Returns the report, and what the lease keeps afterwards. */
async function rebuilt({ workspace, kept }: Left) {
  const lease = new ScriptedLease()
  lease.kept = kept
  const report = await workspace.rebuild({ lease })
  return { report, after: { workspace, kept: lease.kept, tail: left.tail } }
}

/** Opens the state as a server does, and returns what the start found. */
async function started({ workspace, kept }: Left): Promise<{ found: string[]; kept: string | undefined }> {
  const lease = new ScriptedLease()
  lease.kept = kept
  const found: Damage[] = []
  const clock = new VirtualClock(workspace.clock.now() + 1_000)
  const loop = await Loop.open({
    store: workspace.store,
    scope,
    clock,
    lease,
    registry: orchestration,
    name: 'start',
    source: 'servo/test',
    controllers: [],
    ulid: ulidSource(() => clock.now(), seededBytes(3)),
    onFound: (damage) => found.push(damage),
  })
  await loop.compactor.publish()
  await loop.close()
  return { found: found.map(({ message }) => message), kept: lease.kept }
}

test('a sound state with a tail has no findings, neither for verify nor for a start', async () => {
  const state = await copyOfLeft()
  expect(await problems(state)).toEqual([])
  expect((await state.workspace.verify()).unfolded).toHaveLength(3)
  const { found, kept } = await started(state)
  expect(found).toEqual([])
  expect(await problems({ ...state, kept })).toEqual([])
})

describe('a segment of the tail', () => {
  test('[L9] that is gone is named by verify, by a start and by rebuild, if one that came after it is there', async () => {
    const state = await copyOfLeft()
    await state.workspace.store.delete(state.tail[1]!)
    expect((await state.workspace.verify()).problems).toMatchObject([
      { message: expect.stringMatching(/segment \d+ of the writer .* is missing, which came after .* and before/) },
    ])
    const { report, after } = await rebuilt({ ...state, workspace: await state.workspace.copy() })
    expect(report.problems).toMatchObject([{ message: expect.stringContaining('is missing') }])
    expect(await problems(after)).toHaveLength(1)
    const { found, kept } = await started(state)
    expect(found).toEqual([expect.stringMatching(/segment \d+ of the writer .* is missing/)])
    expect(await problems({ ...state, kept }), 'it stays missed').toHaveLength(1)
  })

  test('[L9] that is the last is not missed: nothing names it yet', async () => {
    const state = await copyOfLeft()
    await state.workspace.store.delete(state.tail.at(-1)!)
    expect(await problems(state)).toEqual([])
    expect((await started(state)).found).toEqual([])
  })

  test('is reported by a start if it is damaged, and only once', async () => {
    const state = await copyOfLeft()
    await state.workspace.store.put(state.tail[1]!, garbage)
    expect(await problems(state)).toEqual([state.tail[1]])
    expect((await started(state)).found).toEqual([expect.stringContaining(state.tail[1]!)])
  })
})

test('[L9] segments that were published, whose manifests are gone with them, are missed because the lease names them', async () => {
  const state = await copyOfLeft()
  const { writers } = (await state.workspace.manifests()).at(-1)!
  const { segment } = Object.values(writers!)[0]!
  for (const path of [...state.tail, paths.segment(segment)]) await state.workspace.store.delete(path)
  for (const path of await state.workspace.paths(paths.manifests)) await state.workspace.store.delete(path)
  await state.workspace.store.delete(paths.manifestCopy)
  expect(await problems(state)).toContain(paths.segment(segment))
  const { found } = await started(state)
  expect(found).toContainEqual(expect.stringMatching(new RegExp(`${segment}.*is missing`)))
})

describe('segments that were moved', () => {
  const contents = (workspace: Workspace) => workspace.digests(paths.ledger)

  async function expectMended(
    move: (store: Workspace['store'], a: string, b: string) => Promise<readonly string[]>,
  ): Promise<void> {
    const state = await copyOfLeft()
    const before = await contents(state.workspace)
    const segments = await filesOf(state.workspace, 'segment')
    const named = await move(state.workspace.store, segments[3]!, segments[7]!)
    expect((await problems(state)).sort()).toEqual([...named].sort())
    const { report, after } = await rebuilt(state)
    expect(report).toMatchObject({ problems: [], order: 'recorded' })
    expect(await contents(state.workspace)).toEqual(before)
    expect(await problems(after)).toEqual([])
  }

  test('[L2] and changed places are both named, and put back by rebuild', () =>
    expectMended(async (store, a, b) => {
      const [first, second] = [(await store.get(a))!, (await store.get(b))!]
      await store.put(a, second)
      await store.put(b, first)
      return [a, b]
    }))

  test('[L2] to another name are named with the place that is empty, and put back', () =>
    expectMended(async (store, a) => {
      const elsewhere = a.replace(/\.json$/, '-old.json')
      await store.put(elsewhere, (await store.get(a))!)
      await store.delete(a)
      return [a, elsewhere]
    }))

  test('[L2] over another segment are named, and what they have replaced is lost', async () => {
    const state = await copyOfLeft()
    const segments = await filesOf(state.workspace, 'segment')
    await state.workspace.store.put(segments[3]!, (await state.workspace.store.get(segments[7]!))!)
    expect(await problems(state)).toEqual([segments[3]])
    const { report, after } = await rebuilt(state)
    expect(report.problems.map(({ path }) => path)).toEqual([segments[3]])
    expect(await problems(after)).toEqual([segments[3]])
  })

  test('[L2] and copied are named once, and the copy is removed', () =>
    expectMended(async (store, a) => {
      const [day, name] = [paths.day('2019-01-01'), a.slice(a.lastIndexOf('/') + 1)]
      await store.put(`${day}${name}`, (await store.get(a))!)
      return [`${day}${name}`]
    }))
})

describe('manifests', () => {
  const rows = (workspace: Workspace) => storedRows(workspace.store, scope, orchestration)

  /** What is lost, what verify then names, and whether rebuild has to fold anew. */
  const losses: [
    string,
    (workspace: Workspace, newest: string) => Promise<void>,
    (newest: string) => string[],
    'recorded' | 'anew',
  ][] = [
    ['the newest is gone', (it, newest) => it.store.delete(newest), (newest) => [newest], 'recorded'],
    ['the newest is damaged', (it, newest) => it.store.put(newest, garbage), (newest) => [newest], 'recorded'],
    [
      'the newest and its copy are gone',
      async (it, newest) => {
        await it.store.delete(newest)
        await it.store.delete(paths.manifestCopy)
      },
      (newest) => [newest],
      'anew',
    ],
    [
      'all are gone',
      async (it) => {
        for (const path of await it.paths(paths.manifests)) await it.store.delete(path)
      },
      (newest) => [newest],
      'recorded',
    ],
    [
      'all and their copy are gone',
      async (it) => {
        for (const path of await it.paths(paths.manifests)) await it.store.delete(path)
        await it.store.delete(paths.manifestCopy)
      },
      (newest) => [newest],
      'anew',
    ],
    [
      'all are damaged, and the copy too',
      async (it) => {
        for (const path of await it.paths(paths.manifests)) await it.store.put(path, garbage)
        await it.store.put(paths.manifestCopy, garbage)
      },
      (newest) => [newest, paths.manifestCopy],
      'anew',
    ],
  ]

  test.each(losses)('[S14] %s: verify names them, rebuild mends them, and verify is clean', async (_, lose, named, order) => {
    const state = await copyOfLeft()
    const newest = (await filesOf(state.workspace, MANIFESTS)).at(-1)!
    await lose(state.workspace, newest)
    expect(await problems(state)).toEqual(expect.arrayContaining(named(newest)))
    const { report, after } = await rebuilt(state)
    expect(report).toMatchObject({ order, problems: [] })
    expect(await problems(after)).toEqual([])
  })

  test.each(losses)('[S14] %s: a start says so, goes on, and has the same rows', async (_, lose) => {
    const sound = await copyOfLeft()
    await started(sound)
    const state = await copyOfLeft()
    await lose(state.workspace, (await filesOf(state.workspace, MANIFESTS)).at(-1)!)
    const { found, kept } = await started(state)
    expect(found.length).toBeGreaterThan(0)
    expect(await rows(state.workspace)).toEqual(await rows(sound.workspace))
    // What is damaged stays until it is collected; nothing else is wrong, and a replay proves it.
    for (const path of await state.workspace.paths(paths.manifests))
      if (Buffer.compare((await state.workspace.store.get(path))!, garbage) === 0) await state.workspace.store.delete(path)
    expect(await problems({ ...state, kept })).toEqual([])
  })

  test('[S14] files that only a damaged newest manifest lists are checked too, with its copy or without', async () => {
    const state = await copyOfLeft()
    const [manifest] = (await state.workspace.manifests()).slice(-1)
    const newest = paths.manifest(manifest!.number)
    const only = Object.values(manifest!.l0.at(-1)!.tables).flatMap(({ rows }) => rows ?? [])[0]!.path
    const bytes = (await state.workspace.store.get(newest))!
    await state.workspace.store.put(newest, bytes.with(3, bytes[3]! ^ 1))
    await state.workspace.store.put(only, garbage)
    expect((await problems(state)).sort()).toEqual([newest, only].sort())
    await state.workspace.store.delete(paths.manifestCopy)
    expect((await problems(state)).sort()).toEqual([newest, only].sort())
  })

  test('a start does not pass over a manifest that a newer version of Servo wrote', async () => {
    const state = await copyOfLeft()
    const manifest = (await state.workspace.manifests()).at(-1)!
    const { encodeManifest } = await import('../../../src/engine/manifest/stored-manifests.ts')
    const newer = encodeManifest({ ...manifest, number: manifest.number + 1, format: 9 as 2 })
    await state.workspace.store.put(paths.manifest(manifest.number + 1), newer)
    await expect(started(state)).rejects.toMatchObject({ code: 'unknown_format' })
  })
})

test('[S14] what the lease keeps is not believed if it was altered, and is named', async () => {
  const state = await copyOfLeft()
  const kept = state.kept!.replace(/"manifest":\d+/, '"manifest":99')
  expect(await problems({ ...state, kept })).toEqual(['lease'])
  expect((await started({ ...state, kept })).found).toEqual([expect.stringContaining('lease')])
})

test('a stray file beside the boundary stops no publish, and a boundary above all manifests is named and passed', async () => {
  const state = await copyOfLeft()
  await state.workspace.store.put(`${paths.boundaries}copy-000000000001.json`, new Uint8Array())
  expect(await problems(state)).toEqual([])
  expect((await started(state)).found).toEqual([])
  const above = await copyOfLeft()
  await above.workspace.store.put(paths.boundary(500), new Uint8Array())
  expect(await problems(above)).toContain(paths.manifest(500))
  const { kept } = await started(above)
  expect(await problems({ ...above, kept })).toEqual([])
  expect((await above.workspace.manifests()).at(-1)!.number).toBeGreaterThan(500)
})

test('a first start finds nothing', async () => {
  const workspace = new Workspace(memoryStore())
  expect((await started({ workspace, kept: undefined, tail: [] })).found).toEqual([])
})
