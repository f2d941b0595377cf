import { describe, expect, test } from 'vitest'
import { DAY_MS, MINUTE_MS, toMs } from '../../lib/time.ts'
import { ulidFloor, ulidSource, ulidTime } from '../../lib/ulid.ts'
import { seededBytes } from '../../testing/seeded-bytes.ts'
import type { NewestEvent } from '../manifest/manifest.ts'
import { EventClock } from './event-clock.ts'

const START = toMs('2026-01-15T10:00:00.000Z')

class Bench {
  now = START
  readonly clock = new EventClock({
    clock: { now: () => this.now },
    ulid: ulidSource(() => this.now, seededBytes(7)),
  })
  readonly ids: string[] = []

  /** The place in the order that an event gets now. */
  mint(): number {
    const id = this.clock.mint()
    this.ids.push(id)
    expect(ulidTime(id)).toBe(this.clock.now + this.clock.behindMs)
    expect(this.clock.now).toBe(this.now)
    return ulidTime(id)
  }

  /** What the next process finds on record. */
  get newest(): NewestEvent {
    const event_id = this.ids.at(-1) ?? ''
    return this.clock.behindMs === 0 ? { event_id } : { event_id, behind_ms: this.clock.behindMs }
  }

  get idsGrow(): boolean {
    return this.ids.every((id, i) => i === 0 || (this.ids[i - 1] ?? '') < id)
  }
}

describe('[P20] the clock of events', () => {
  test('says what the clock says, as long as that goes on', () => {
    const bench = new Bench()
    expect([bench.mint(), bench.mint()]).toEqual([START, START])
    bench.now += MINUTE_MS
    expect([bench.mint(), bench.clock.behindMs]).toEqual([START + MINUTE_MS, 0])
    expect(bench.idsGrow).toBe(true)
  })

  test('goes on from where it was when the clock is set back, at the pace of the clock, and until the clock has passed that', () => {
    const bench = new Bench()
    bench.mint()
    bench.now -= MINUTE_MS
    expect([bench.mint(), bench.clock.behindMs]).toEqual([START + 1, MINUTE_MS + 1])
    bench.now += 30_000
    expect(bench.mint()).toBe(START + 30_001)
    bench.now = START + DAY_MS
    expect([bench.mint(), bench.clock.behindMs]).toEqual([START + DAY_MS, 0])
    expect(bench.idsGrow).toBe(true)
  })

  test('goes on from what is on record, by as much as the process before was behind', () => {
    const before = new Bench()
    before.clock.follow({ event_id: ulidFloor(START + 365 * DAY_MS) })
    expect(before.mint()).toBe(START + 365 * DAY_MS + 1)
    const { behindMs } = before.clock
    const next = new Bench()
    next.now += MINUTE_MS
    next.clock.follow(before.newest)
    // Also the minute in which no process ran has passed.
    expect([next.mint(), next.clock.behindMs]).toEqual([START + MINUTE_MS + behindMs, behindMs])
  })

  test('gives larger ids than that on record in the same millisecond', () => {
    const before = new Bench()
    before.mint()
    const next = new Bench()
    next.clock.follow(before.newest)
    expect(next.mint()).toBe(START)
    expect(next.clock.behindMs).toBe(0)
    expect((next.ids[0] ?? '') > (before.ids[0] ?? '')).toBe(true)
  })

  test('follows what others write meanwhile, and nothing older than itself', () => {
    const bench = new Bench()
    bench.mint()
    bench.clock.follow({ event_id: ulidFloor(START - DAY_MS), behind_ms: DAY_MS })
    expect([bench.mint(), bench.clock.behindMs]).toEqual([START, 0])
    bench.clock.follow({ event_id: ulidFloor(START + DAY_MS) })
    expect(bench.mint()).toBe(START + DAY_MS + 1)
    expect(bench.idsGrow).toBe(true)
  })
})
