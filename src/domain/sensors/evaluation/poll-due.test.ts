import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../../../lib/time.ts'
import { newEvent } from '../../../model/event.ts'
import { SensorBench } from '../../../testing/sensor-bench.ts'
import { AutomationPaused } from '../../automation/automation-paused.event.ts'
import { AutomationResumed } from '../../automation/automation-resumed.event.ts'
import { automationState, EVERYTHING } from '../../automation/automation-state.table.ts'
import { errorBackoffMs } from '../backoff.ts'
import { SensorPaused } from '../sensor-paused.event.ts'
import { SensorRemoved } from '../sensor-removed.event.ts'
import { SensorResumed } from '../sensor-resumed.event.ts'
import { EmptyPollNotes } from './empty-polls.ts'
import type { EvaluationResult } from './evaluation-events.ts'
import { nextPollAt } from './poll-due.ts'
import { standstillOf } from './standstill.ts'

const EVERY = 10 * SECOND_MS
const found: EvaluationResult = { runs: [{ asset_selection: ['orders'] }], cursor: 'x' }
const failed: EvaluationResult = { error: 'no route to host' }

class Polled extends SensorBench {
  startedAt = this.now
  #begun = 0

  constructor(id = 'files', every_ms = EVERY, min_interval_sec = 0) {
    super(id)
    this.define({ config: { type: 'poll', every_ms }, min_interval_sec })
  }

  get standing() {
    const everything = this.bench.state.hot(automationState).get(EVERYTHING)
    return { definition: this.definition, state: this.state, everything }
  }

  get next(): number | undefined {
    return nextPollAt({ ...this.standing, startedAt: this.startedAt, now: this.now })
  }

  /** How long the next poll is away. */
  get wait(): number | undefined {
    return this.next === undefined ? undefined : this.next - this.now
  }

  poll(result: EvaluationResult): void {
    const { state_version = 0, cursor = null } = this.state ?? {}
    this.write(this.eventsOf({ source: { source: 'poll', state_version, cursor }, begun: `${this.#begun++}`, result }))
  }

  switched(definition: typeof SensorPaused | typeof SensorResumed): void {
    this.write([newEvent(definition, { sensor_id: this.id, request_id: `r${this.#begun++}`, changed_by: 'ada' })])
  }
}

describe('a sensor is polled', () => {
  test('[A32] as soon as it is declared, and then as often as it says', () => {
    const sensor = new Polled()
    expect(sensor.wait).toBe(0)
    sensor.poll(found)
    expect(sensor.wait).toBe(EVERY)
  })

  test('[A32] not more often than its minimum interval allows', () => {
    const sensor = new Polled('files', EVERY, 60)
    sensor.poll(found)
    expect(sensor.wait).toBe(MINUTE_MS)
  })

  test('[A24][A32] later and later while polls fail, up to ten minutes, and on time again after one that succeeds', () => {
    const sensor = new Polled()
    const waits = Array.from({ length: 12 }, () => {
      sensor.poll(failed)
      expect(sensor.state?.backoff_until).toBe(sensor.now + errorBackoffMs(sensor.state?.consecutive_errors ?? 0))
      return sensor.wait
    })
    const seconds = [10, 10, 20, 40, 80, 160, 320, 600, 600, 600, 600, 600]
    expect(waits).toEqual(seconds.map((each) => each * SECOND_MS))
    sensor.poll(found)
    expect(sensor.wait).toBe(EVERY)
  })

  test('[A24] at once when it is resumed, whatever failed before', () => {
    const sensor = new Polled()
    for (let n = 0; n < 9; n++) sensor.poll(failed)
    sensor.now += EVERY
    expect(sensor.wait).toBeGreaterThan(MINUTE_MS)
    sensor.switched(SensorPaused)
    expect(sensor.next).toBeUndefined()
    sensor.switched(SensorResumed)
    expect(sensor.wait).toBeLessThanOrEqual(0)
  })

  test('[A33] not while it or all automation is paused, or when it is disabled or removed, and says why not', () => {
    const sensor = new Polled()
    const why = () => {
      const standstill = standstillOf(sensor.standing)
      expect(sensor.next === undefined).toBe(standstill !== undefined)
      return standstill
    }
    expect(why()).toBeUndefined()
    sensor.write([newEvent(AutomationPaused, { request_id: 'r1', changed_by: 'ana', reason: 'moving house' })])
    expect(why()).toEqual({ code: 'automation_paused', since: sensor.now, by: 'ana', reason: 'moving house' })
    sensor.switched(SensorPaused)
    expect(why()).toEqual({ code: 'paused', since: sensor.now, by: 'ada', reason: null })
    sensor.switched(SensorResumed)
    expect(why()?.code).toBe('automation_paused')
    sensor.write([newEvent(AutomationResumed, { request_id: 'r2', changed_by: 'ana' })])
    expect(why()).toBeUndefined()
    sensor.define({ config: { type: 'poll', every_ms: EVERY }, enabled: false })
    expect(why()).toMatchObject({ code: 'disabled', since: sensor.now })
    sensor.define({ config: { type: 'poll', every_ms: EVERY } })
    expect(why()).toBeUndefined()
    sensor.write([newEvent(SensorRemoved, { sensor_id: sensor.id, request_id: 'r3', removed_by: 'ada' })])
    expect(why()).toMatchObject({ code: 'removed', since: sensor.now })
  })

  test('[A32] never, if it is one that gets messages', () => {
    const sensor = new Polled()
    sensor.define({ config: { type: 'webhook', path: 'files', verify: 'none' } })
    expect([standstillOf(sensor.standing), sensor.next]).toEqual([undefined, undefined])
  })

  test('[A32] within a minute of a start if it was due before, each sensor at a moment of its own', () => {
    const firsts = Array.from({ length: 100 }, (_, n) => {
      const sensor = new Polled(`sensor-${n}`, HOUR_MS)
      sensor.poll(found)
      sensor.now += 3 * HOUR_MS
      sensor.startedAt = sensor.now
      const { next } = sensor
      sensor.now += 1
      expect(sensor.next, 'it does not move while it is waited for').toBe(next)
      return (next ?? 0) - sensor.startedAt
    })
    expect(Math.min(...firsts)).toBeGreaterThanOrEqual(0)
    expect(Math.max(...firsts)).toBeLessThan(MINUTE_MS)
    const perSecond = new Map<number, number>()
    for (const first of firsts)
      perSecond.set(Math.floor(first / SECOND_MS), (perSecond.get(Math.floor(first / SECOND_MS)) ?? 0) + 1)
    expect(Math.max(...perSecond.values())).toBeLessThan(10)
  })

  test('[A32] on time through every step of the clock, ahead or back, with errors or without', () => {
    const steps = fc.array(
      fc.record({ seconds: fc.nat({ max: 120 }), clock: fc.integer({ min: -HOUR_MS, max: HOUR_MS }), isBad: fc.boolean() }),
      {
        minLength: 1,
        maxLength: 4,
      },
    )
    const property = fc.property(steps, (plan) => {
      const sensor = new Polled()
      // Seconds that really passed since the last poll.
      let waited = 0
      // Seconds by which the clock was set back since. A step back to before the last poll makes the next one due at once.
      let setBack = 0
      for (const { seconds, clock, isBad } of plan) {
        for (let second = 0; second < seconds; second++) {
          if ((sensor.next ?? Number.POSITIVE_INFINITY) <= sensor.now) {
            sensor.poll(isBad ? failed : found)
            waited = 0
            setBack = 0
          }
          sensor.now += SECOND_MS
          waited += 1
          const longest = Math.max(EVERY, errorBackoffMs(sensor.state?.consecutive_errors ?? 0)) / SECOND_MS
          expect(waited, 'seconds without a poll').toBeLessThanOrEqual(longest + 1 + Math.min(setBack, longest))
        }
        sensor.now += clock
        setBack += Math.max(0, -clock / SECOND_MS)
      }
      // At most one poll for each interval, and one more for each step of the clock.
      const total = plan.reduce((sum, { seconds }) => sum + seconds, 0)
      expect(sensor.state?.state_version ?? 0).toBeLessThanOrEqual(total / 10 + plan.length + 1)
    })
    fc.assert(property)
  })
})

describe('polls that find nothing', () => {
  test('[A23] of a hundred sensors, each six times a minute, are one event every two minutes', () => {
    const notes = new EmptyPollNotes()
    const start = Date.UTC(2025, 0, 15, 10)
    let events = 0
    let polls = 0
    for (let now = start; now <= start + HOUR_MS; now += EVERY) {
      if (notes.dueAt !== undefined && notes.dueAt <= now) {
        const taken = notes.take(`r${now}`)
        events += taken.length
        for (const { definition, payload } of taken) {
          const parsed = definition.parse(payload)
          expect(parsed.success).toBe(true)
          for (const { poll_count } of parsed.success ? parsed.data.polled : []) polls += poll_count
        }
      }
      for (let n = 0; n < 100; n++) notes.note(`sensor-${n}`, 0, now)
    }
    expect([events, polls]).toEqual([30, 60 * 6 * 100])
    expect(notes.take('end', 'sensor-0')).toHaveLength(1)
    expect(notes.take('end', 'sensor-0'), 'what was taken is gone').toEqual([])
    expect(notes.take('end')).toHaveLength(1)
    expect(notes.dueAt).toBeUndefined()
  })

  test('[A23] are told of more sensors than one event has room for in several', () => {
    const notes = new EmptyPollNotes()
    for (let n = 0; n < 4_001; n++) notes.note(`sensor-${n}`, 0, 0)
    const taken = notes.take('r')
    expect(taken).toHaveLength(3)
    expect(new Set(taken.map(({ definition, payload }) => definition.idempotencyKey(payload))).size).toBe(3)
  })
})
