import { beforeAll, describe, expect, test } from 'vitest'
import { memoryStore } from '../../../src/adapters/memory/object-store.ts'
import { orchestration } from '../../../src/domain/index.ts'
import { TaskFinished } from '../../../src/domain/tasks/task-finished.event.ts'
import { backUp } from '../../../src/engine/backup/back-up.ts'
import { readRecord } from '../../../src/engine/backup/backup-record.ts'
import { copyBack } from '../../../src/engine/backup/copy-back.ts'
import { lookOver } from '../../../src/engine/check/look-over.ts'
import { Archives } from '../../../src/engine/ledger/archives.ts'
import { encodeSegment, openSegment } from '../../../src/engine/ledger/segment.ts'
import { segmentUlid } from '../../../src/engine/paths.ts'
import { sha256 } from '../../../src/lib/hash.ts'
import { DAY_MS } from '../../../src/lib/time.ts'
import type { Envelope } from '../../../src/model/envelope.ts'
import type { NewEvent } from '../../../src/model/event.ts'
import { newEvent } from '../../../src/model/event.ts'
import type { ObjectStore } from '../../../src/ports/object-store.ts'
import { reportFact, runFacts } from '../../../src/testing/facts.ts'
import { backupOf, storeCopier } from '../../../src/testing/store-copier.ts'
import { VirtualClock } from '../../../src/testing/virtual-clock.ts'
import { interceptedStore } from '../intercepted-store.ts'
import { paths, scope, Workspace } from '../workspace.ts'
import { eventCounts, FIRST, packAll, packerOf, publishNext, severalDays } from './packed-days.ts'

/** The same state with its ledger in files, and packed. */
let inFiles: Workspace
let packed: Workspace

beforeAll(async () => {
  inFiles = (await severalDays(4)).workspace
  packed = await inFiles.copy()
  const compactor = await packed.compactor({ name: 'packs' })
  await packAll(packerOf(packed, compactor))
  await publishNext(packed, compactor, reportFact('after'))
})

const archive = (day: number): string => paths.archive(FIRST[day]!, 1)

async function withoutTables(workspace: Workspace): Promise<Workspace> {
  const copy = await workspace.copy()
  for (const path of await copy.paths()) {
    if (!path.startsWith(paths.ledger) && !path.startsWith(paths.archives)) await copy.store.delete(path)
  }
  return copy
}

describe('a packed ledger', { timeout: 120_000 }, () => {
  test('[L10][S6] is rebuilt to the same tables, byte for byte, as one in files', async () => {
    const [fromFiles, fromArchives] = await Promise.all([inFiles, packed].map(withoutTables))
    // The same moment and the same events.
    const last = (await packed.paths(paths.ledger)).at(-1)!
    await fromFiles!.store.put(last, (await packed.store.get(last))!)
    fromFiles!.clock.nowMs = fromArchives!.clock.nowMs
    const reports = await Promise.all([fromFiles!, fromArchives!].map((workspace) => workspace.rebuild()))
    expect(reports[1]).toMatchObject({ order: 'anew', problems: [] })
    expect(reports[1]).toEqual({ ...reports[0], manifest: reports[1]!.manifest })
    const tables = (workspace: Workspace) => workspace.digests(paths.state)
    expect(Object.values(await tables(fromArchives!)).sort()).toEqual(Object.values(await tables(fromFiles!)).sort())
    expect(await fromArchives!.verify()).toMatchObject({ ok: true, problems: [], replayed: true, unfolded: [] })
  })

  test('[L10][S14] has damaged tables mended from its archives, to the same bytes', async () => {
    const workspace = await packed.copy()
    const before = await workspace.digests(paths.state)
    for (const path of Object.keys(before)) if (path.endsWith('.parquet')) await workspace.store.delete(path)
    expect(await workspace.rebuild()).toMatchObject({ order: 'recorded', problems: [] })
    expect(await workspace.digests(paths.state)).toMatchObject(before)
  })

  test('[L10][S14] is folded again by a start that has lost every manifest, and is named again by the next that packs', async () => {
    const workspace = await withoutTables(packed)
    const compactor = await workspace.compactor({ name: 'start' })
    expect(await compactor.catchUp()).toBe((await packed.verify({ quick: true })).segments)
    for (const name of ['closes', 'settles', 'goes on']) await publishNext(workspace, compactor, reportFact(name))
    const events = await eventCounts(workspace)
    await packAll(packerOf(workspace, compactor))
    expect(await eventCounts(workspace)).toEqual(events)
    expect(compactor.manifest.archives?.levels[0].map(({ path }) => path)).toEqual([0, 1, 2].map(archive))
    expect(await workspace.paths(paths.archives)).toHaveLength(3)
    expect(await workspace.verify()).toMatchObject({ ok: true, problems: [], unfolded: [] })
  })

  test('[S14] that is packed while it is verified is in order, whatever was listed before', async () => {
    for (const listed of [paths.archives, paths.ledger]) {
      const workspace = await inFiles.copy()
      const compactor = await workspace.compactor({ name: 'packs' })
      let isPacked = false
      const store = interceptedStore(workspace.store, async ({ method, path }) => {
        if (isPacked || method !== 'list' || path !== listed) return
        isPacked = true
        await packAll(packerOf(workspace, compactor))
      })
      expect(await new Workspace(store, workspace.clock, 8).verify()).toMatchObject({ ok: true, problems: [], replayed: true })
      expect(isPacked).toBe(true)
    }
  })

  test('[S10][S14] of many archives has them listed in pages, which are kept, checked, and not needed to mend the rest', async () => {
    const workspace = await inFiles.copy()
    const compactor = await workspace.compactor({ name: 'packs' })
    await packAll(packerOf(workspace, compactor, { rule: { maxSegments: 1 } }))
    await publishNext(workspace, compactor, reportFact('after'))
    const pages = (await workspace.paths(paths.state)).filter((path) => path.includes('_archives_pages'))
    expect(pages).toHaveLength(1)
    expect(compactor.manifest.archives?.levels[0].length).toBeLessThan(16)
    workspace.clock.pass(DAY_MS)
    await workspace.collect(0)
    expect(await workspace.verify({ quick: true })).toMatchObject({ ok: true, problems: [] })
    await workspace.store.delete(pages[0]!)
    expect((await workspace.verify({ quick: true })).problems).toMatchObject([{ path: pages[0] }])
    expect((await workspace.rebuild()).problems).toEqual([])
    expect(await workspace.verify()).toMatchObject({ ok: true, problems: [], unfolded: [] })
  })

  test('[S14] is checked to the last byte: one changed bit anywhere is named, in one line', async () => {
    const bytes = (await packed.store.get(archive(0)))!
    const workspace = await packed.copy()
    const positions = Array.from({ length: 25 }, () => Math.floor(Math.random() * bytes.length))
    for (const at of [0, 1, bytes.length - 1, bytes.length - 33, bytes.length - 45, ...positions]) {
      await workspace.store.put(archive(0), bytes.with(at, bytes[at]! ^ (1 << (at % 8))))
      const { problems } = await workspace.verify({ quick: true })
      expect(problems, `byte ${at}`).toMatchObject([{ path: archive(0), message: expect.stringContaining('is damaged') }])
    }
  })

  test.each<
    [string, (store: ObjectStore, bytes: (day: number) => Uint8Array) => Promise<void>, Record<string, RegExp>, boolean]
  >([
    ['cut off', (store, bytes) => store.put(archive(0), bytes(0).subarray(0, 100)), { [archive(0)]: /is damaged/ }, false],
    ['emptied', (store) => store.put(archive(0), new Uint8Array()), { [archive(0)]: /cut off/ }, false],
    ['deleted', (store) => store.delete(archive(0)), { [archive(0)]: /is missing, but the manifest names it/ }, false],
    [
      'renamed',
      async (store, bytes) => {
        await store.put(paths.archive(FIRST[0], 7), bytes(0))
        await store.delete(archive(0))
      },
      { [archive(0)]: /is missing/, [paths.archive(FIRST[0], 7)]: /holds the archive 2025-01-15-0001/ },
      true,
    ],
    [
      'moved to a name that is none',
      async (store, bytes) => {
        await store.put(`${paths.archives}old.zst`, bytes(0))
        await store.delete(archive(0))
      },
      { [archive(0)]: /is missing/, [`${paths.archives}old.zst`]: /is not where an archive belongs/ },
      true,
    ],
    [
      'duplicated',
      (store, bytes) => store.put(paths.archive(FIRST[0], 2), bytes(0)),
      { [paths.archive(FIRST[0], 2)]: /holds the archive 2025-01-15-0001/ },
      true,
    ],
    [
      'swapped with another',
      async (store, bytes) => {
        await store.put(archive(0), bytes(1))
        await store.put(archive(1), bytes(0))
      },
      { [archive(0)]: /holds the archive 2025-01-16/, [archive(1)]: /holds the archive 2025-01-15/ },
      true,
    ],
  ])(
    '[S14] of which an archive is %s: verify names it and nothing else, and rebuild mends what can be mended',
    async (_, harm, named, mends) => {
      const workspace = await packed.copy()
      const contents = await Promise.all([0, 1].map(async (day) => (await packed.store.get(archive(day)))!))
      await harm(workspace.store, (day) => contents[day]!)
      const { problems } = await workspace.verify()
      expect(problems.map(({ path }) => path).sort()).toEqual(Object.keys(named).sort())
      for (const { path, message } of problems) expect(message).toMatch(named[path]!)
      const report = await workspace.rebuild()
      if (mends) {
        expect(report.problems).toEqual([])
        expect(await workspace.digests(paths.archives)).toEqual(await packed.digests(paths.archives))
        expect(await workspace.verify()).toMatchObject({ ok: true, problems: [], replayed: true })
      } else expect((await workspace.verify()).problems.length).toBeGreaterThan(0)
    },
  )

  test('[S14] of which an archive is gone, or shorter than it was: a start says so', async () => {
    const workspace = await packed.copy()
    const [manifest] = (await workspace.manifests()).slice(-1)
    expect(await Array.fromAsync(lookOver(workspace.store, paths, manifest!))).toEqual([])
    await workspace.store.delete(archive(0))
    await workspace.store.put(archive(1), new Uint8Array(9))
    const found = await Array.fromAsync(lookOver(workspace.store, paths, manifest!))
    expect(found.map(({ path }) => path)).toEqual([archive(0), archive(1)])
  })

  test('of which a segment lies in a file too, as a leader leaves it that is killed, is in order; another one of that name is named', async () => {
    const workspace = await packed.copy()
    const [path] = await inFiles.paths(paths.day(FIRST[0]))
    await workspace.store.put(path!, (await inFiles.store.get(path!))!)
    expect(await workspace.verify()).toMatchObject({ ok: true, problems: [], events: (await eventCounts(packed)).size })
    const other = await severalDays(1, new Workspace())
    const [from] = (await other.workspace.paths(paths.ledger)).slice(1)
    const { events } = openSegment((await other.workspace.store.get(from!))!, from!, scope)
    await workspace.store.put(
      path!,
      encodeSegment(
        segmentUlid(path!)!,
        events.map((event) => JSON.stringify(event)),
      ),
    )
    expect((await workspace.verify()).problems).toMatchObject([{ path, message: expect.stringContaining('that was packed') }])
  })
})

describe('a backup', { timeout: 120_000 }, () => {
  const copying = async (from: ObjectStore, to: ObjectStore) =>
    await backUp({ ...backupOf(from, to), scope, registry: orchestration, clock: new VirtualClock() })

  test('[L10] of a ledger that is packed after the first one has the archives instead of the segments, and restores to the same', async () => {
    const workspace = await inFiles.copy()
    const store = memoryStore()
    const first = await copying(workspace.store, store)
    const compactor = await workspace.compactor({ name: 'packs' })
    await packAll(packerOf(workspace, compactor))
    await publishNext(workspace, compactor, reportFact('after'))
    const second = await copying(workspace.store, store)
    expect(second.segments).toBe(first.segments + 1)
    const backup = new Workspace(store, workspace.clock, 3)
    for (const folder of [paths.ledger, paths.archives])
      expect(await backup.digests(folder)).toEqual(await workspace.digests(folder))
    expect(await backup.verify()).toMatchObject({ ok: true, problems: [], replayed: true })
    expect(await copying(workspace.store, store)).toMatchObject({ copied: { files: 0 }, removed: 0 })
    const restored = new Workspace(memoryStore(), workspace.clock, 4)
    const record = (await readRecord(store))!
    await copyBack({ from: store, to: restored.store, files: storeCopier(store, restored.store), record })
    expect(await restored.digests(paths.root)).toEqual(await backup.digests(paths.root))
  })

  test('[L10] that runs while a day is packed has every segment, in a file or in an archive', async () => {
    const workspace = await inFiles.copy()
    const store = memoryStore()
    const compactor = await workspace.compactor({ name: 'packs' })
    let copied = 0
    const from: ObjectStore = {
      ...workspace.store,
      async get(path) {
        if (path.startsWith(paths.ledger) && copied++ === 3) await packAll(packerOf(workspace, compactor))
        return await workspace.store.get(path)
      },
    }
    await copying(from, store)
    const backup = new Workspace(store, workspace.clock, 3)
    expect(await eventCounts(backup)).toEqual(await eventCounts(workspace))
    expect(await backup.verify()).toMatchObject({ ok: true, problems: [], unfolded: [] })
  })
})

test('[L11] a value that is forgotten is packed as its size and checksum; the index keeps what the segment was, and replay and verify accept it', async () => {
  const workspace = new Workspace()
  const compactor = await workspace.compactor()
  const secret = '{"amount":"to be forgotten"}'
  const valued = (name: string, value: string): NewEvent[][] =>
    runFacts(name, { tasks: 1 }).batches.map((batch) =>
      batch.map((event) => {
        if (event.definition !== TaskFinished) return event
        const payload = event.payload as Parameters<typeof TaskFinished.idempotencyKey>[0]
        return newEvent(TaskFinished, { ...payload, output: { value, bytes: value.length, sha256: sha256(value), rows: 3 } })
      }),
    )
  await workspace.appendAll([...valued('first', secret), ...valued('second', '"kept"')])
  await compactor.catchUp()
  await compactor.publish({ kind: 'base' })
  workspace.clock.pass(3 * DAY_MS)
  for (const name of ['closes', 'settles']) await publishNext(workspace, compactor, reportFact(name))
  const before = await workspace.verify()
  const findForgotten = async (events: readonly Envelope[]) =>
    events.map((event) => JSON.stringify(event).includes('to be forgotten'))
  await packAll(packerOf(workspace, compactor, { findForgotten }))

  const archives = new Archives({ store: workspace.store, paths })
  const segments = [...(await archives.segments(paths.archive(FIRST[0], 1))).values()]
  const changed = segments.filter(({ original }) => original !== undefined)
  expect(changed).toMatchObject([
    { original: { forgotten_values: [sha256(secret)], bytes: expect.any(Number), sha256: expect.stringMatching(/^\w{64}$/) } },
  ])
  for (const { ulid } of segments) {
    const text = Buffer.from((await archives.read(ulid))!).toString()
    expect(text).not.toContain('to be forgotten')
    if (ulid === changed[0]!.ulid)
      expect(text).toContain(`"output":{"bytes":${secret.length},"rows":3,"sha256":"${sha256(secret)}"}`)
  }
  expect(await workspace.verify()).toMatchObject({ ok: true, problems: [], events: before.events, segments: before.segments })
  expect(orchestration.events.flatMap(({ type, carries }) => (carries === undefined ? [] : [type]))).toEqual(['TaskFinished'])
})
