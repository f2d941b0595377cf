import { zstdDecompressSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { memoryStore } from '../../../src/adapters/memory/object-store.ts'
import { Archives } from '../../../src/engine/ledger/archives.ts'
import { readSegment } from '../../../src/engine/ledger/read-segment.ts'
import { archivesOf } from '../../../src/engine/manifest/manifest.ts'
import { readEntries } from '../../../src/engine/manifest/page-list.ts'
import { segmentUlid } from '../../../src/engine/paths.ts'
import { sha256 } from '../../../src/lib/hash.ts'
import { HOUR_MS } from '../../../src/lib/time.ts'
import { countingStore } from '../../../src/testing/counting-store.ts'
import { reportFact } from '../../../src/testing/facts.ts'
import { ScriptedLease } from '../../../src/testing/scripted-lease.ts'
import { Gate, interceptedStore } from '../intercepted-store.ts'
import { paths, scope, Workspace } from '../workspace.ts'
import { eventCounts, FIRST, packAll, packerOf, publishNext, severalDays } from './packed-days.ts'

const archivesIn = (workspace: Workspace): Promise<string[]> => workspace.paths(paths.archives)

async function ledgerOf(workspace: Workspace): Promise<Map<string, Uint8Array>> {
  const found = new Map<string, Uint8Array>()
  for (const path of await workspace.paths(paths.ledger)) found.set(path, (await workspace.store.get(path))!)
  return found
}

describe('packing', () => {
  test('[L10] makes one archive of a day that is settled and over for a day, in which every segment is as it was', async () => {
    const { workspace, compactor } = await severalDays(4)
    const before = await ledgerOf(workspace)
    await packAll(packerOf(workspace, compactor))
    expect(await archivesIn(workspace)).toEqual(FIRST.map((day) => paths.archive(day, 1)))
    const left = await ledgerOf(workspace)
    expect([...left.keys()].every((path) => path.startsWith(paths.day('2025-01-18')))).toBe(true)
    const archives = new Archives({ store: workspace.store, paths })
    for (const [path, bytes] of before) {
      if (!left.has(path)) expect(Buffer.compare((await archives.read(segmentUlid(path)!))!, bytes)).toBe(0)
      expect(await readSegment({ store: workspace.store, paths, scope }, segmentUlid(path)!)).toBeDefined()
    }
    expect(await workspace.verify()).toMatchObject({
      ok: true,
      problems: [],
      replayed: true,
      segments: before.size,
      unfolded: [],
    })
    const named = await Array.fromAsync(readEntries(workspace.store, archivesOf(compactor.manifest)))
    expect(named.map(({ path }) => path)).toEqual(await archivesIn(workspace))
  })

  test('[L10] deletes a segment only once its archive is durable, whole and named by a durable manifest', async () => {
    const { workspace, compactor } = await severalDays(3)
    let deleted = 0
    const watched = interceptedStore(workspace.store, async ({ method, path }) => {
      if (method !== 'delete') return
      deleted += 1
      const [newest] = (await workspace.manifests()).slice(-1)
      const named = await Array.fromAsync(readEntries(workspace.store, archivesOf(newest!)))
      const found = await new Archives({ store: workspace.store, paths }).find(segmentUlid(path)!)
      const ref = named.find((entry) => entry.path === found!.path)
      expect(ref?.sha256).toBe(sha256((await workspace.store.get(found!.path))!))
      expect(found!.segment.sha256).toBe(sha256((await workspace.store.get(path))!))
    })
    await packAll(packerOf(workspace, compactor, { store: watched, rule: { maxSegments: 4 } }))
    expect(deleted).toBeGreaterThan(10)
  })

  test('[L10] makes files that any tool can read: a segment per line', async () => {
    const { workspace, compactor } = await severalDays(3)
    const before = [...(await ledgerOf(workspace)).entries()].filter(([path]) => path.startsWith(paths.day(FIRST[0])))
    await packerOf(workspace, compactor).step()
    const text = zstdDecompressSync((await workspace.store.get(paths.archive(FIRST[0], 1)))!).toString()
    expect(text).toBe(before.map(([, bytes]) => `${Buffer.from(bytes)}\n`).join(''))
  })

  test('[L10] makes several archives of a large day, none larger than it may be', async () => {
    const { workspace, compactor } = await severalDays(3)
    const before = await eventCounts(workspace)
    await packAll(packerOf(workspace, compactor, { rule: { maxSegments: 2 } }))
    const ofFirst = (await archivesIn(workspace)).filter((path) => path.includes(FIRST[0]))
    expect(ofFirst).toHaveLength(3)
    const byBytes = await severalDays(3)
    await packAll(packerOf(byBytes.workspace, byBytes.compactor, { rule: { maxBytes: 1 } }))
    expect((await archivesIn(byBytes.workspace)).filter((path) => path.includes(FIRST[0]))).toHaveLength(6)
    expect(await eventCounts(workspace)).toEqual(before)
    expect(await workspace.verify()).toMatchObject({ ok: true, problems: [] })
  })

  test('leaves days alone that are not settled, or were over a moment ago', async () => {
    const { workspace, compactor } = await severalDays(3)
    const packer = packerOf(workspace, compactor, { rule: { afterMs: 4 * 24 * HOUR_MS } })
    expect(await packer.step()).toBe(false)
    expect(await archivesIn(workspace)).toEqual([])
    workspace.clock.pass(60 * 24 * HOUR_MS)
    await packAll(packerOf(workspace, compactor))
    expect((await archivesIn(workspace)).at(-1)).toBe(paths.archive(FIRST[1], 1))
  })

  test('[L10] costs what is new: a step without work asks nothing, and a start reads no archive', async () => {
    const counting = countingStore(memoryStore())
    const { workspace, compactor } = await severalDays(6, new Workspace(counting))
    const packer = packerOf(workspace, compactor)
    await packAll(packer)
    counting.reset()
    expect(await packer.step()).toBe(false)
    expect(counting.requests).toEqual([])
    for (const name of ['x', 'y', 'z']) await publishNext(workspace, compactor, reportFact(name))
    workspace.clock.pass(24 * HOUR_MS)
    await publishNext(workspace, compactor, reportFact('next day'))
    await publishNext(workspace, compactor, reportFact('settles'))
    counting.reset()
    expect(await packAll(packer)).toBeGreaterThan(0)
    const days = new Set(counting.pathsUnder(paths.ledger).map((path) => path.slice(paths.ledger.length).slice(0, 10)))
    expect([...days]).toEqual(['2025-01-20', '2025-01-21'].slice(0, days.size))
    counting.reset()
    const start = await workspace.compactor({ name: 'next' })
    expect(await start.catchUp()).toBe(0)
    expect(counting.pathsUnder(paths.archives, 'get', 'getRange', 'size')).toEqual([])
    // Once something was published, who comes next does not look at packed days either.
    await publishNext(workspace, compactor, reportFact('later'))
    const later = await workspace.compactor({ name: 'later' })
    counting.reset()
    expect(await packerOf(workspace, later).step()).toBe(false)
    expect(counting.requests).toEqual([])
  })

  test('[L10] hides nothing from a reader that listed the day before', async () => {
    const { workspace, compactor } = await severalDays(3)
    // Knows nothing of days, as a reader that listed the ledger long ago.
    const gate = new Gate(({ method, path }) => method === 'get' && path.startsWith(paths.ledger))
    const fresh = new Workspace(interceptedStore(workspace.store, gate.before), workspace.clock, 7)
    for (const path of await workspace.paths(paths.manifests)) await workspace.store.delete(path)
    await workspace.store.delete(paths.manifestCopy)
    const view = await fresh.view()
    const reading = view.fresh()
    await gate.arrived
    await packAll(packerOf(workspace, compactor))
    expect(await archivesIn(workspace)).toHaveLength(2)
    gate.open()
    const { events, complete } = await reading
    expect({ events, complete }).toEqual({ events: (await eventCounts(workspace)).size, complete: true })
  })

  test('[L10] gives a straggler of a packed day an archive of its own', async () => {
    const { workspace, compactor } = await severalDays(3)
    await packAll(packerOf(workspace, compactor))
    // Nobody acknowledged it there, but a write that took days has got through.
    const elsewhere = await severalDays(1, new Workspace(memoryStore(), undefined, 5))
    const [path] = await elsewhere.workspace.paths(paths.ledger)
    await workspace.store.put(path!, (await elsewhere.workspace.store.get(path!))!)
    expect((await workspace.verify()).problems).toMatchObject([{ message: expect.stringContaining('servo rebuild folds it') }])
    await workspace.rebuild()
    const next = await workspace.compactor({ name: 'next' })
    await packAll(packerOf(workspace, next))
    expect(await archivesIn(workspace)).toContain(paths.archive(FIRST[0], 2))
    expect(await workspace.store.get(path!)).toBeUndefined()
    expect(await workspace.verify()).toMatchObject({ ok: true, problems: [], unfolded: [] })
  })

  test('leaves a damaged segment where it is, for verify to name, and packs the others', async () => {
    const { workspace, compactor } = await severalDays(3)
    const [path] = await workspace.paths(paths.day(FIRST[0]))
    const bytes = (await workspace.store.get(path!))!
    await workspace.store.put(path!, bytes.subarray(0, 50))
    await packAll(packerOf(workspace, compactor))
    expect(await workspace.paths(paths.day(FIRST[0]))).toEqual([path])
    expect((await workspace.verify()).problems.map((problem) => problem.path)).toEqual([path])
    await workspace.store.put(path!, bytes)
    expect(await workspace.verify()).toMatchObject({ ok: true, problems: [] })
  })

  test('[E7] a leader that was deposed names no archive and deletes no segment', async () => {
    const { workspace } = await severalDays(3)
    const lease = new ScriptedLease()
    const compactor = await workspace.compactor({ lease })
    const before = await workspace.paths(paths.ledger)
    const gate = new Gate(({ method, path }) => method === 'create' && path.startsWith(paths.archives))
    const packer = packerOf(workspace, compactor, { store: interceptedStore(workspace.store, gate.before), lease })
    const packing = packer.step()
    await gate.arrived
    lease.lose()
    gate.open()
    await expect(packing).rejects.toMatchObject({ code: 'deposed' })
    expect(await workspace.paths(paths.ledger)).toEqual(before)
  })
})
