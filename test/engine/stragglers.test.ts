import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { memoryStore } from '../../src/adapters/memory/object-store.ts'
import { checksummedText } from '../../src/engine/files/checksummed-json.ts'
import { decodeSegment, encodeSegment, type Segment } from '../../src/engine/ledger/segment.ts'
import type { Compactor } from '../../src/engine/publish/compactor.ts'
import { canonicalJson } from '../../src/lib/json.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../src/lib/time.ts'
import { ulidSource } from '../../src/lib/ulid.ts'
import { countingStore } from '../../src/testing/counting-store.ts'
import { reportFact, runFacts } from '../../src/testing/facts.ts'
import { seededBytes } from '../../src/testing/seeded-bytes.ts'
import { hotRows } from './busy-day.ts'
import { Gate, interceptedStore } from './intercepted-store.ts'
import { paths, scope, Workspace } from './workspace.ts'

/** Appends with a clock that is wrong by so much. Returns the segment as it would be announced. */
async function appendSkewed(workspace: Workspace, skewMs: number, report: string): Promise<Segment> {
  const now = (): number => workspace.clock.now() + skewMs
  const clock = { now, sleep: (ms: number) => workspace.clock.sleep(ms) }
  let announced: Segment | undefined
  const onDurable = (segment: Segment): void => {
    announced = segment
  }
  workspace.clock.pass(1)
  const ulid = ulidSource(now, seededBytes(workspace.clock.now()))
  await workspace.ledger({ clock, ulid, onDurable }).append([reportFact(report)])
  return announced!
}

/** Looks for what is new, publishes, and says how many segments the tables are made of. */
async function settle(compactor: Compactor, kind: 'delta' | 'base' = 'delta'): Promise<number> {
  await compactor.catchUp()
  await compactor.publish({ kind })
  return compactor.manifest.watermarks.segments
}

async function expectAllFolded(workspace: Workspace): Promise<void> {
  const report = await workspace.verify()
  expect(report.problems).toEqual([])
  expect(report).toMatchObject({ ok: true, unfolded: [], relaid: [] })
  expect((await workspace.manifests()).at(-1)?.watermarks.segments).toBe(report.segments)
}

describe('a segment whose name says another time than it is', () => {
  test.each([
    ['an hour behind the watermark', -HOUR_MS],
    ['an hour ahead of everybody', HOUR_MS],
    ['a week ahead of everybody', 7 * DAY_MS],
  ])('[I1] %s is found by listing, and so is everything after it, also by a process that starts anew', async (_, skew) => {
    const workspace = new Workspace()
    let compactor = await workspace.compactor()
    await appendSkewed(workspace, 0, 'before')
    expect(await settle(compactor, 'base')).toBe(1)
    await appendSkewed(workspace, skew, 'skewed')
    expect(await settle(compactor)).toBe(2)
    await appendSkewed(workspace, 0, 'after')
    expect(await settle(compactor, 'base')).toBe(3)
    workspace.clock.pass(10 * MINUTE_MS)
    compactor = await workspace.compactor({ name: 'next' })
    await appendSkewed(workspace, 0, 'after a restart')
    await appendSkewed(workspace, skew, 'skewed again')
    expect(await settle(compactor, 'base')).toBe(5)
    expect(await settle(compactor)).toBe(5)
    await expectAllFolded(workspace)
  })

  test('[S7][I1] further behind than any clock is wrong is folded when it is announced, and found by listing when it is not', async () => {
    const workspace = new Workspace()
    const compactor = await workspace.compactor()
    await appendSkewed(workspace, 0, 'before')
    await settle(compactor, 'base')
    const announced = await appendSkewed(workspace, -3 * DAY_MS, 'announced')
    await appendSkewed(workspace, -3 * DAY_MS, 'in silence')
    await compactor.fold.applyPaths([paths.segment(announced.ulid)])
    expect(compactor.fold.unpublished).toBe(1)
    expect(await compactor.catchUp()).toBe(1)
    await settle(compactor)
    await expectAllFolded(workspace)
  })
})

describe('a segment that is announced again', () => {
  test('[S7] changes nothing: not twice in one call, not after a publish, not after a restart', async () => {
    const workspace = new Workspace()
    const compactor = await workspace.compactor()
    const segment = await appendSkewed(workspace, 0, 'once')
    const verdicts = await compactor.fold.apply([segment, segment])
    expect([...verdicts.values()]).toEqual([{ kind: 'applied' }])
    expect(compactor.fold.unpublished).toBe(1)
    expect((await compactor.fold.apply([segment])).size).toBe(0)
    expect(await compactor.catchUp()).toBe(0)
    for (const kind of ['delta', 'base'] as const) {
      await compactor.publish({ kind })
      const opened = [compactor, await workspace.compactor({ name: `after ${kind}` })]
      for (const one of opened) {
        expect((await one.fold.apply([segment])).size).toBe(0)
        await one.fold.applyPaths([paths.segment(segment.ulid), paths.segment(segment.ulid)])
        expect(await one.catchUp({ settledToo: true })).toBe(0)
        expect(one.fold.unpublished).toBe(0)
      }
    }
    await expectAllFolded(workspace)
  })

  test('[I2] is recognised when it is older than what memory remembers: the recorded order is read again', async () => {
    const counting = countingStore(memoryStore())
    const workspace = new Workspace(counting)
    let compactor = await workspace.compactor()
    const old: Segment[] = []
    // More bases than fit into one page of the list.
    for (let i = 0; i < 70; i++) {
      old.push(await appendSkewed(workspace, i % 3 === 0 ? -HOUR_MS : 0, `r${i}`))
      await compactor.fold.apply([old.at(-1)!])
      await compactor.publish({ kind: 'base' })
      workspace.clock.pass(2 * HOUR_MS)
    }
    for (const opened of [compactor, await workspace.compactor({ name: 'next' })]) {
      compactor = opened
      counting.reset()
      const again = [old[3]!, old[0]!, old[69]!, old[35]!]
      expect((await compactor.fold.apply(again)).size).toBe(0)
      expect(counting.pathsUnder(`${paths.state}_order/`, 'get').length).toBeGreaterThan(0)
      // What was read is remembered.
      counting.reset()
      expect((await compactor.fold.apply(again)).size).toBe(0)
      expect(counting.count()).toBe(0)
      expect((await compactor.fold.apply(old)).size).toBe(0)
    }
    // A recent one needs no look at what is old: memory follows what is under way, and so do requests.
    const fresh = await workspace.compactor({ name: 'fresh' })
    const recent = await appendSkewed(workspace, 0, 'recent')
    counting.reset()
    expect((await fresh.fold.apply([recent])).size).toBe(1)
    expect(counting.pathsUnder(`${paths.state}_order`).length).toBeLessThanOrEqual(1)
    await fresh.publish()
    await expectAllFolded(workspace)
  })
})

test('[S7] a straggler that is folded while a base is being written, and is in no recorded order yet, is not forgotten', async () => {
  const workspace = new Workspace()
  const gate = new Gate(({ method, path }) => method === 'create' && path.includes('/runs/'))
  const compactor = await workspace.compactor({
    store: interceptedStore(workspace.store, gate.before),
  })
  await appendSkewed(workspace, 0, 'in the base')
  await compactor.catchUp()
  const publishing = compactor.publish({ kind: 'base' })
  await gate.arrived
  const straggler = await appendSkewed(workspace, -HOUR_MS, 'straggler')
  expect((await compactor.fold.apply([straggler])).size).toBe(1)
  gate.open()
  await publishing
  expect((await compactor.fold.apply([straggler])).size).toBe(0)
  await compactor.publish()
  await expectAllFolded(workspace)
})

test('[F3] the same batch under two names, as a writer leaves it that could not know, changes nothing the second time', async () => {
  const workspace = new Workspace()
  const { batches } = runFacts('r', { tasks: 1 })
  for (const batch of batches) await workspace.append(...batch, reportFact(`with ${batch.length} ${workspace.clock.now()}`))
  const once = await workspace.copy()
  const ulid = ulidSource(() => workspace.clock.now(), seededBytes(77))
  for (const path of await workspace.paths(paths.ledger)) {
    workspace.clock.pass(1)
    const name = ulid()
    const texts = decodeSegment((await workspace.store.get(path))!, path, scope).map((event) => canonicalJson(event))
    await workspace.store.put(paths.segment(name), encodeSegment(name, texts))
  }
  const rows = []
  for (const one of [once, workspace]) {
    const compactor = await one.compactor()
    await compactor.catchUp()
    rows.push(hotRows(compactor.state))
    await compactor.publish({ kind: 'base' })
    await expectAllFolded(one)
  }
  expect(rows[1]).toEqual(rows[0])
})

test('[S7][I1][I2] each segment is folded once, however clocks are wrong, whatever is announced and whichever process restarts', async () => {
  const step = fc.record({
    skewMs: fc.constantFrom(0, 0, 0, -HOUR_MS, HOUR_MS, -90 * MINUTE_MS, 3 * DAY_MS),
    passMs: fc.constantFrom(0, 1_000, 40 * MINUTE_MS, 3 * HOUR_MS),
    announce: fc.constantFrom('no', 'now', 'twice', 'all again'),
    after: fc.constantFrom('nothing', 'catch up', 'delta', 'base', 'restart'),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 12 }), async (steps) => {
      const workspace = new Workspace()
      let compactor = await workspace.compactor()
      const segments: Segment[] = []
      for (const [i, { skewMs, passMs, announce, after }] of steps.entries()) {
        segments.push(await appendSkewed(workspace, skewMs, `r${i}`))
        const told = { no: [], now: segments.slice(-1), twice: [segments.at(-1)!, segments.at(-1)!], 'all again': segments }
        await compactor.fold.apply(told[announce])
        if (after === 'catch up') await compactor.catchUp()
        else if (after === 'restart') compactor = await workspace.compactor({ name: `next ${i}` })
        else if (after !== 'nothing') await compactor.publish({ kind: after })
        workspace.clock.pass(passMs)
      }
      // A process that restarted has forgotten what it was told and did not publish; whoever starts anew finds it.
      const last = await workspace.compactor({ name: 'last' })
      await last.catchUp()
      await last.publish()
      expect(last.manifest.watermarks.segments).toBe(steps.length)
      await expectAllFolded(workspace)
    }),
    { numRuns: Number(process.env['SERVO_RUNS'] ?? 25) },
  )
})

test('[L2] segments of earlier versions, which have no name in them, are read', async () => {
  const workspace = new Workspace()
  const { segment } = await workspace.append(reportFact('a'))
  const path = paths.segment(segment)
  const events = decodeSegment((await workspace.store.get(path))!, path, scope)
  await workspace.store.put(path, checksummedText('events', canonicalJson(events)))
  expect(await settle(await workspace.compactor())).toBe(1)
  await expectAllFolded(workspace)
})

describe('a segment that cannot be read', () => {
  const otherScope = `[{"event_id":"01JHMX0000000000000000000A","event_type":"X","event_version":1,"timestamp":"2025-01-15T10:00:00.000Z","source":"s","tenant_id":"other","workspace_id":"other","idempotency_key":"k","payload":{}}]`
  const damage: [string, Uint8Array][] = [
    ['has a bit that fell over', new Uint8Array()],
    ['is empty', new Uint8Array()],
    ['is not what Servo writes', new TextEncoder().encode('hello')],
    ['has the right checksum and no JSON', checksummedText('events', '[,]')],
    ['has the right checksum and no events', checksummedText('events', '[]')],
    ['has the right checksum and something else', checksummedText('events', '{"a":1}')],
    ['belongs to somebody else', checksummedText('events', otherScope)],
  ]

  test.each(damage)('[L1] because it %s is reported, stops nobody, and is folded once it is repaired', async (what, bytes) => {
    const workspace = new Workspace()
    const compactor = await workspace.compactor()
    await workspace.append(reportFact('before'))
    const { segment } = await workspace.append(reportFact('damaged'))
    const path = paths.segment(segment)
    const good = (await workspace.store.get(path))!
    const bad = what.includes('bit') ? good.with(40, good[40]! ^ 4) : bytes
    await workspace.store.put(path, bad)
    await workspace.append(reportFact('after'))

    expect(await settle(compactor)).toBe(2)
    expect([...compactor.fold.damaged.keys()]).toEqual([path])
    expect(compactor.fold.damaged.get(path)?.message).toContain(path)
    const report = await workspace.verify()
    expect(report.problems.map((problem) => problem.path)).toEqual([path])

    // Somebody restores the backup, a day too late for the listing.
    workspace.clock.pass(DAY_MS)
    await workspace.append(reportFact('next day'))
    await settle(compactor, 'base')
    await workspace.store.put(path, good)
    expect(await settle(compactor)).toBe(4)
    expect(compactor.fold.damaged.size).toBe(0)
    await expectAllFolded(workspace)
  })

  test('[L2] because it changed places with another is reported, and so is the other', async () => {
    const workspace = new Workspace()
    const compactor = await workspace.compactor()
    const swapped = [await workspace.append(reportFact('a')), await workspace.append(reportFact('b'))]
    const [one, other] = swapped.map(({ segment }) => paths.segment(segment)) as [string, string]
    const bytes = (await workspace.store.get(one))!
    await workspace.store.put(one, (await workspace.store.get(other))!)
    await workspace.store.put(other, bytes)
    expect(await settle(compactor)).toBe(0)
    expect([...compactor.fold.damaged.keys()].sort()).toEqual([one, other])
    const { problems } = await workspace.verify()
    expect(problems).toEqual([
      { path: one, message: `${one} holds the segment ${swapped[1]!.segment}` },
      { path: other, message: `${other} holds the segment ${swapped[0]!.segment}` },
    ])
  })

  test('because it lies in the wrong folder, or has a name of no time, stops nobody', async () => {
    const workspace = new Workspace()
    const compactor = await workspace.compactor()
    const { segment } = await workspace.append(reportFact('good'))
    const bytes = (await workspace.store.get(paths.segment(segment)))!
    const strange = [
      `2025-01-01/${segment}.json`,
      '2025-01-15/7ZZZZZZZZZZZZZZZZZZZZZZZZZ.json',
      '2025-01-15/notes.txt',
      'README.json',
    ]
    for (const name of strange) await workspace.store.put(`${paths.ledger}${name}`, bytes)
    expect(await settle(compactor)).toBe(1)
    await compactor.fold.applyPaths(['', '/', '../..', ...strange.map((name) => `${paths.ledger}${name}`)])
    expect(compactor.fold.unpublished).toBe(0)
    const report = await workspace.verify()
    expect(report.problems.map((problem) => problem.path)).toEqual(strange.map((name) => `${paths.ledger}${name}`).sort())
  })
})
