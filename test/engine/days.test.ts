import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { memoryStore } from '../../src/adapters/memory/object-store.ts'
import { includesDay, withDays } from '../../src/engine/ledger/days.ts'
import type { Compactor } from '../../src/engine/publish/compactor.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, utcDay } from '../../src/lib/time.ts'
import { ulidSource, ulidTime } from '../../src/lib/ulid.ts'
import type { ObjectStore } from '../../src/ports/object-store.ts'
import { countingStore } from '../../src/testing/counting-store.ts'
import { reportFact } from '../../src/testing/facts.ts'
import { faultyStore, scriptedFaults } from '../../src/testing/faulty-store.ts'
import { Gate, interceptedStore } from './intercepted-store.ts'
import { paths, seededBytes, Workspace } from './workspace.ts'

let writers = 0

/** A writer in a process of its own, whose clock is wrong by so much. It keeps what it knows. */
function writerOf(workspace: Workspace, skewMs: number, store: ObjectStore = workspace.store) {
  const now = (): number => workspace.clock.now() + skewMs
  const clock = { now, sleep: (ms: number) => workspace.clock.sleep(ms) }
  const ulid = ulidSource(now, seededBytes(writers++))
  const ledger = workspace.ledger({ store, clock, ulid })
  return async (report: string): Promise<string> => (await ledger.append([reportFact(report)])).segment
}

/** Works as a server does for a while: looks, publishes, and has its days closed and settled. */
async function work(workspace: Workspace, compactor: Compactor, times = 3): Promise<void> {
  for (let i = 0; i < times; i++) {
    await writerOf(workspace, 0)(`work ${workspace.clock.now()}`)
    await compactor.catchUp()
    await compactor.publish({ kind: i % 2 === 0 ? 'base' : 'delta' })
    workspace.clock.pass(3 * MINUTE_MS)
  }
}

async function expectNothingMissing(workspace: Workspace, segments: number): Promise<void> {
  const fresh = await workspace.compactor({ name: 'fresh' })
  await fresh.catchUp()
  await fresh.publish()
  const report = await workspace.verify()
  expect(report).toMatchObject({ ok: true, problems: [], unfolded: [], segments })
  expect(fresh.manifest.watermarks.segments).toBe(segments)
}

const settledDays = (compactor: Compactor) => compactor.manifest.settled_days

describe('days', () => {
  test('[S7] are settled once they ended, are closed durably and folded; a start lists the others only', async () => {
    const counting = countingStore(memoryStore())
    const workspace = new Workspace(counting)
    const compactor = await workspace.compactor()
    const first = utcDay(workspace.clock.now())
    await work(workspace, compactor)
    expect(compactor.manifest).toMatchObject({ closed_days: [], settled_days: [] })
    workspace.clock.pass(DAY_MS)
    await writerOf(workspace, 0)('a day later')
    await compactor.catchUp()
    await compactor.publish()
    expect(compactor.manifest).toMatchObject({ closed_days: [[first, first]], settled_days: [] })
    await writerOf(workspace, 0)('a moment later')
    await compactor.catchUp()
    await compactor.publish({ kind: 'base' })
    expect(compactor.manifest).toMatchObject({ closed_days: [], settled_days: [[first, first]] })
    counting.reset()
    const next = await workspace.compactor({ name: 'next' })
    expect(await next.catchUp()).toBe(0)
    expect(counting.pathsUnder(paths.ledger, 'list')).toEqual([paths.day(utcDay(workspace.clock.now()))])
    await expectNothingMissing(workspace, 5)
  })

  test('[S10] that are settled are forgotten by the first publishes: a manifest names only the open ones', async () => {
    const workspace = new Workspace()
    const compactor = await workspace.compactor()
    const first = utcDay(workspace.clock.now())
    for (let day = 0; day < 5; day++) {
      await work(workspace, compactor, 2)
      workspace.clock.pass(DAY_MS)
    }
    await work(workspace, compactor)
    const today = utcDay(workspace.clock.now())
    expect(settledDays(compactor)).toEqual([[first, utcDay(workspace.clock.now() - DAY_MS)]])
    expect(Object.keys(compactor.manifest.first_publishes ?? {})).toEqual([today])
  })

  test('leaders that live for a moment close them and settle them, one after the other', async () => {
    const workspace = new Workspace()
    await work(workspace, await workspace.compactor(), 1)
    const first = utcDay(workspace.clock.now())
    workspace.clock.pass(DAY_MS)
    for (const name of ['closes', 'settles']) await work(workspace, await workspace.compactor({ name }), 1)
    expect((await workspace.compactor({ name: 'reads' })).manifest.settled_days).toEqual([[first, first]])
  })

  test('that were quiet in between become one range, and a year of silence stays open', async () => {
    const workspace = new Workspace()
    const compactor = await workspace.compactor()
    const first = utcDay(workspace.clock.now())
    for (const days of [0, 10, 31, 400, 2]) {
      workspace.clock.pass(days * DAY_MS)
      await work(workspace, compactor, 2)
    }
    const last = utcDay(workspace.clock.now() - 2 * DAY_MS)
    await work(workspace, compactor, 2)
    expect(settledDays(compactor)).toEqual([
      [first, utcDay(Date.UTC(2025, 0, 15) + 41 * DAY_MS)],
      [last, last],
    ])
  })

  test('[S7] with a segment that cannot be read are not settled until it is repaired', async () => {
    const workspace = new Workspace()
    const compactor = await workspace.compactor()
    const path = paths.segment(await writerOf(workspace, 0)('damaged'))
    const good = (await workspace.store.get(path))!
    await workspace.store.put(path, new Uint8Array(5))
    workspace.clock.pass(2 * DAY_MS)
    await work(workspace, compactor)
    expect(settledDays(compactor)).toEqual([])
    await workspace.store.put(path, good)
    await work(workspace, compactor)
    expect(settledDays(compactor)).toHaveLength(1)
    await expectNothingMissing(workspace, 7)
  })
})

test.each(['whole', 'damaged'])(
  '[S7] a closed day is listed once more before it is settled: a late segment, %s, is found',
  async (what) => {
    const workspace = new Workspace()
    // Its write reaches our store late: it was written to another.
    const elsewhere = memoryStore()
    const path = paths.segment(await writerOf(workspace, 0, elsewhere)('late'))
    const bytes = (await elsewhere.get(path))!
    const compactor = await workspace.compactor()
    const day = utcDay(workspace.clock.now())
    await work(workspace, compactor, 1)
    workspace.clock.pass(DAY_MS)
    await work(workspace, compactor, 1)
    expect(compactor.manifest).toMatchObject({ closed_days: [[day, day]], settled_days: [] })
    await workspace.store.put(path, what === 'whole' ? bytes : bytes.subarray(0, 20))
    // Heard of, so that there is something to publish, and nothing else is looked for.
    await compactor.fold.applyPaths([paths.segment(await writerOf(workspace, 0)('heard of'))])
    await compactor.publish({ kind: 'base' })
    expect(settledDays(compactor)).toEqual(what === 'whole' ? [[day, day]] : [])
    if (what === 'damaged') await workspace.store.put(path, bytes)
    await work(workspace, compactor, 1)
    expect(settledDays(compactor)).toEqual([[day, day]])
    await expectNothingMissing(workspace, 5)
  },
)

describe('a clock that was wrong', () => {
  test.each([
    ['26 hours ahead', 26 * HOUR_MS],
    ['a month ahead', 30 * DAY_MS],
    ['a year ahead', 365 * DAY_MS],
    ['two days behind', -2 * DAY_MS],
    ['a year behind', -365 * DAY_MS],
  ])('[S7] %s hides nothing of what is acknowledged before, with and after it, whoever is killed', async (_, skew) => {
    const workspace = new Workspace()
    await work(workspace, await workspace.compactor())
    let segments = 3
    for (const jump of [skew, -skew]) {
      workspace.clock.pass(jump)
      await work(workspace, await workspace.compactor({ name: `after ${jump}` }))
      segments += 3
      for (let kill = 0; kill < 3; kill++) {
        // Acknowledged, and killed before anything is published.
        const killed = await workspace.compactor({ name: `killed ${kill}` })
        await killed.catchUp()
        await writerOf(workspace, 0)(`acknowledged ${jump} ${kill}`)
        segments += 1
        const next = await workspace.compactor({ name: `next ${kill}` })
        expect(await next.catchUp()).toBe(kill + 1)
      }
    }
    await expectNothingMissing(workspace, segments)
  })

  test('[L5] of a writer beside a leader: its names are of days that are open', async () => {
    const workspace = new Workspace()
    const compactor = await workspace.compactor()
    await work(workspace, compactor)
    workspace.clock.pass(3 * DAY_MS)
    await work(workspace, compactor)
    expect(settledDays(compactor)).toHaveLength(1)
    const behind = writerOf(workspace, -3 * DAY_MS)
    const names = [await behind('a'), await behind('b'), await behind('c')]
    expect(names.toSorted()).toEqual(names)
    for (const name of names) expect(includesDay(settledDays(compactor)!, utcDay(ulidTime(name)))).toBe(false)
    expect(await compactor.catchUp()).toBe(3)
    await compactor.publish()
    await expectNothingMissing(workspace, 9)
  })

  test('[L5] of a writer that knows the days as of a moment ago: what it writes meanwhile is acknowledged where it is found', async () => {
    const workspace = new Workspace()
    const compactor = await workspace.compactor()
    await work(workspace, compactor)
    workspace.clock.pass(3 * DAY_MS)
    const behind = writerOf(workspace, -3 * DAY_MS)
    await behind('learns that nothing is closed')
    await compactor.catchUp()
    await compactor.publish()
    expect(compactor.manifest.closed_days).toHaveLength(1)
    workspace.clock.pass(59 * SECOND_MS)
    await behind('does not know better')
    await work(workspace, compactor, 1)
    await work(workspace, compactor, 1)
    expect(settledDays(compactor)).toHaveLength(1)
    // Its first try, in the closed day, was folded before the day was settled.
    await expectNothingMissing(workspace, 8)
  })

  test('[L5] of a writer whose write takes longer than it takes to settle a day: it is acknowledged where it is found', async () => {
    const workspace = new Workspace()
    const compactor = await workspace.compactor()
    await work(workspace, compactor)
    workspace.clock.pass(3 * DAY_MS)
    const gate = new Gate(({ method, path }) => method === 'create' && path.startsWith(paths.ledger))
    const appended = writerOf(workspace, -3 * DAY_MS, interceptedStore(workspace.store, gate.before))('slow')
    await gate.arrived
    await work(workspace, compactor)
    expect(settledDays(compactor)).toHaveLength(1)
    gate.open()
    expect(includesDay(settledDays(compactor)!, utcDay(ulidTime(await appended)))).toBe(false)
    expect(await compactor.catchUp()).toBe(1)
    // The first try lies in a settled day. It was never acknowledged under that name, and a rebuild folds it.
    expect((await workspace.verify()).problems).toMatchObject([{ message: expect.stringContaining('servo rebuild') }])
    await workspace.rebuild()
    await expectNothingMissing(workspace, 8)
  })

  test('[S7][I1] and a crash at any request: nothing acknowledged is missing', async () => {
    const skews = fc.constantFrom(0, 26 * HOUR_MS, -2 * DAY_MS, 365 * DAY_MS, -3 * HOUR_MS)
    const step = fc.record({
      skew: skews,
      pass: fc.constantFrom(0, 3 * MINUTE_MS, 5 * HOUR_MS, DAY_MS),
      dies: fc.nat({ max: 30 }),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 2, maxLength: 8 }), async (steps) => {
        const workspace = new Workspace()
        let acknowledged = 0
        for (const [i, { skew, pass, dies }] of steps.entries()) {
          workspace.clock.pass(pass + skew)
          const plan = scriptedFaults(Array.from({ length: 200 }, (_, n) => ({ nth: dies + n + 1, outcome: 'lost' as const })))
          const leader = workspace.compactor({ name: `leader ${i}`, store: faultyStore(workspace.store, plan) })
          await leader
            .then(async (compactor) => {
              await compactor.catchUp()
              await compactor.publish()
              workspace.clock.pass(3 * MINUTE_MS)
              await compactor.publish({ kind: 'base' })
            })
            .catch(() => undefined)
          await writerOf(workspace, 0)(`r${i}`)
          acknowledged += 1
          workspace.clock.pass(-skew)
        }
        await expectNothingMissing(workspace, acknowledged)
      }),
      { numRuns: Number(process.env['SERVO_RUNS'] ?? 25) },
    )
  })
})

test('ranges of days are as few as they can be, and have every day that was added', () => {
  const day = fc.integer({ min: 0, max: 60 }).map((n) => utcDay(Date.UTC(2025, 1, 1) + n * DAY_MS))
  fc.assert(
    fc.property(fc.array(day), fc.array(day), (some, more) => {
      const ranges = withDays(withDays([], some), more)
      const all = new Set([...some, ...more])
      for (let n = -1; n < 62; n++) {
        const one = utcDay(Date.UTC(2025, 1, 1) + n * DAY_MS)
        expect(includesDay(ranges, one)).toBe(all.has(one))
      }
      for (let i = 1; i < ranges.length; i++) {
        expect(Date.parse(ranges[i]![0]) - Date.parse(ranges[i - 1]![1])).toBeGreaterThan(DAY_MS)
      }
    }),
  )
})
