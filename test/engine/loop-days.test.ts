import { expect, test } from 'vitest'
import { memoryStore } from '../../src/adapters/memory/object-store.ts'
import { orchestration } from '../../src/domain/index.ts'
import { verify } from '../../src/engine/check/verify.ts'
import { includesDay } from '../../src/engine/ledger/days.ts'
import { Loop } from '../../src/engine/loop/loop.ts'
import { segmentUlid } from '../../src/engine/paths.ts'
import { DAY_MS, MINUTE_MS, utcDay } from '../../src/lib/time.ts'
import { ulidSource, ulidTime } from '../../src/lib/ulid.ts'
import type { ObjectStore } from '../../src/ports/object-store.ts'
import { reportFact } from '../../src/testing/facts.ts'
import { ScriptedLease } from '../../src/testing/scripted-lease.ts'
import { VirtualClock } from '../../src/testing/virtual-clock.ts'
import { paths, scope, seededBytes } from './workspace.ts'

/** One workspace whose leader is started again and again, on a clock that somebody sets forward and back. */
class Restarted {
  readonly clock = new VirtualClock()
  readonly store: ObjectStore = memoryStore()
  readonly today = utcDay(this.clock.now())
  #starts = 0

  async start(): Promise<Loop> {
    this.#starts += 1
    const { store, clock } = this
    const ulid = ulidSource(() => clock.now(), seededBytes(this.#starts))
    const names = { name: `start-${this.#starts}`, source: 'test' }
    const lease = new ScriptedLease(this.#starts)
    return await Loop.open({ ...names, store, scope, clock, ulid, lease, registry: orchestration, controllers: [] })
  }

  /** A leader whose clock is two days ahead finds that today is long over, and closes it; `settles` is whether it stays for longer. */
  async closeToday({ settles }: { settles: boolean }): Promise<void> {
    const first = await this.start()
    await first.submit([reportFact('before')])
    this.clock.jump(2 * DAY_MS)
    const ahead = await this.start()
    await ahead.submit([reportFact('ahead')])
    await ahead.compactor.publish()
    if (settles) {
      await this.clock.advance(3 * MINUTE_MS)
      await ahead.submit([reportFact('a while later')])
      await ahead.compactor.publish()
    }
    await ahead.close()
    this.clock.jump(-2 * DAY_MS)
  }

  async names(): Promise<string[]> {
    const names: string[] = []
    for await (const { path } of this.store.list(paths.ledger)) names.push(segmentUlid(path) as string)
    return names
  }
}

/** The segments of published deltas, in the order in which they were consumed. */
const consumedBy = ({ compactor }: Loop): readonly string[] => compactor.manifest.l0.flatMap(({ segments }) => segments)

test.each([
  ['closed', { settles: false }],
  ['settled', { settles: true }],
] as const)(
  '[L5] the loop acknowledges nothing in a day that is %s, though the clock says it is today',
  async (what, closing) => {
    const world = new Restarted()
    await world.closeToday(closing)
    const loop = await world.start()
    const { closed_days = [], settled_days = [] } = loop.compactor.manifest
    expect(includesDay(what === 'closed' ? closed_days : settled_days, world.today)).toBe(true)
    expect(utcDay(world.clock.now())).toBe(world.today)

    const before = new Set(await world.names())
    for (const report of ['a', 'b', 'c']) await loop.submit([reportFact(report)])
    const written = (await world.names()).filter((name) => !before.has(name))
    expect(written).toHaveLength(3)
    for (const name of written) expect(includesDay([...closed_days, ...settled_days], utcDay(ulidTime(name)))).toBe(false)

    // Killed before it published: whoever starts next does not list days that are settled, and finds all three.
    const next = await world.start()
    await next.compactor.publish()
    expect(consumedBy(next).slice(-3)).toEqual(written)
    const report = await verify({ store: world.store, scope, registry: orchestration, scratch: memoryStore() })
    expect(report).toMatchObject({ ok: true, problems: [], unfolded: [] })
  },
)

test('[S6] what was written after a clock was set back follows what was written before, also for the next start', async () => {
  const world = new Restarted()
  world.clock.jump(DAY_MS)
  const ahead = await world.start()
  await ahead.submit([reportFact('ahead')])
  world.clock.jump(-DAY_MS)
  // Each was killed before it published.
  const later = await world.start()
  await later.submit([reportFact('later')])
  const last = await world.start()
  await last.compactor.publish()
  expect(consumedBy(last)).toEqual((await world.names()).sort().reverse())
})
