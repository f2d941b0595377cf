import { describe, expect, test } from 'vitest'
import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../../lib/time.ts'
import { ScheduleSimulation } from '../../testing/schedule-simulation.ts'
import type { ConditionAnswer, Conditions, TickInQuestion } from './conditions.ts'

const START = Date.UTC(2025, 2, 28, 12)
const hourly = { cron_expressions: ['0 * * * *'], has_condition: true }
const holds: ConditionAnswer = { verdict: 'holds' }

/** Answers when the test says so. */
class ScriptedConditions implements Conditions {
  readonly asked: TickInQuestion[] = []
  #answer: ConditionAnswer | undefined
  out = false

  ask(question: TickInQuestion): ConditionAnswer | undefined {
    const last = this.asked.at(-1)
    if (last?.tick !== question.tick || this.#answer === undefined) this.asked.push(question)
    return this.#answer
  }

  isOut(): boolean {
    return this.out
  }

  forget(): void {
    this.#answer = undefined
  }

  answer(simulation: ScheduleSimulation, answer: ConditionAnswer): void {
    this.#answer = answer
    simulation.run(0)
  }

  get ticks(): number[] {
    return [...new Set(this.asked.map(({ tick }) => tick))]
  }
}

function simulated(definition: object) {
  const simulation = new ScheduleSimulation(START)
  const conditions = new ScriptedConditions()
  simulation.conditions = conditions
  simulation.define({ ...hourly, ...definition })
  return { simulation, conditions }
}

const recorded = (simulation: ScheduleSimulation) =>
  simulation.ticks().map((tick) => [tick.status, tick.cause, tick.reason_code, tick.reason])

describe('a schedule with a condition', () => {
  test.each([
    [holds, ['triggered', 'cron', null, null], 1],
    [{ verdict: 'does not hold', reason: 'a holiday' }, ['skipped', 'cron', 'condition', 'a holiday'], 0],
    [{ verdict: 'failed', reason: 'it threw' }, ['failed', 'cron', 'condition_error', 'it threw'], 0],
  ] as const)('[A66] records nothing before it is answered, then %j as %j', (answer, tick, runs) => {
    const { simulation, conditions } = simulated({})
    simulation.run(HOUR_MS + 10 * SECOND_MS)
    expect(simulation.ticks()).toEqual([])
    expect(conditions.asked[0]).toMatchObject({ schedule_name: 'nightly', tick: START + HOUR_MS })
    conditions.answer(simulation, answer)
    expect(recorded(simulation)).toEqual([tick])
    expect(simulation.runs()).toHaveLength(runs)
  })

  test('[A66] a tick that was on time when it was asked is on time, however late the answer; what came meanwhile is missed', () => {
    const { simulation, conditions } = simulated({ cron_expressions: ['* * * * *'], max_catchup_ticks: 1 })
    simulation.run(4 * MINUTE_MS)
    expect(conditions.ticks).toEqual([START + MINUTE_MS])
    conditions.answer(simulation, holds)
    expect(conditions.ticks).toEqual([1, 3].map((minute) => START + minute * MINUTE_MS))
    conditions.answer(simulation, holds)
    conditions.answer(simulation, holds)
    expect(recorded(simulation).map(([status, cause]) => [status, cause])).toEqual([
      ['triggered', 'cron'],
      ['skipped', 'cron'],
      ['triggered', 'catch_up'],
      ['triggered', 'cron'],
    ])
  })

  test('[A66] asks about missed ticks that it catches up on, the oldest first, and about no others', () => {
    const { simulation, conditions } = simulated({ max_catchup_ticks: 2 })
    simulation.wait(5.5 * HOUR_MS)
    simulation.run(0)
    for (let i = 0; i < 2; i++) conditions.answer(simulation, holds)
    expect(conditions.ticks).toEqual([4, 5].map((hour) => START + hour * HOUR_MS))
    expect(simulation.triggered()).toEqual(conditions.ticks)
  })

  test('[A66] asks again after a crash, and records the result once', () => {
    const { simulation, conditions } = simulated({})
    simulation.run(HOUR_MS)
    expect(conditions.ticks).toEqual([START + HOUR_MS])
    simulation.wait(20 * SECOND_MS)
    simulation.run(0)
    expect(conditions.asked.length).toBeGreaterThan(1)
    expect(conditions.ticks).toEqual([START + HOUR_MS])
    conditions.answer(simulation, holds)
    simulation.wait(0)
    simulation.run(MINUTE_MS)
    expect(simulation.triggered()).toEqual([START + HOUR_MS])
  })

  test('[A66] a tick that was asked about before a pause, a change or a removal is settled by the answer', () => {
    const { simulation, conditions } = simulated({})
    simulation.run(HOUR_MS)
    simulation.setPaused(true)
    simulation.define({ ...hourly, cron_expressions: ['30 * * * *'] })
    conditions.answer(simulation, holds)
    expect(simulation.triggered()).toEqual([START + HOUR_MS])
    expect(simulation.state().undecided).toEqual([])
    simulation.run(HOUR_MS)
    simulation.setPaused(false)
    expect(simulation.triggered()).toEqual([START + HOUR_MS])
    expect([...simulation.skipped()]).toEqual([START + 1.5 * HOUR_MS])
  })

  test('[A79] while its code cannot be evaluated its ticks wait, and are on time, caught up or missed when it can', () => {
    const { simulation, conditions } = simulated({ cron_expressions: ['* * * * *'], max_catchup_ticks: 1 })
    conditions.out = true
    simulation.run(4 * MINUTE_MS + 10 * SECOND_MS)
    expect(simulation.ticks()).toEqual([])
    conditions.out = false
    simulation.run(5 * SECOND_MS)
    conditions.answer(simulation, holds)
    conditions.answer(simulation, holds)
    expect(recorded(simulation).map(([status, cause]) => [status, cause])).toEqual([
      ['skipped', 'cron'],
      ['triggered', 'catch_up'],
      ['triggered', 'cron'],
    ])
    expect(simulation.triggered()).toEqual([3, 4].map((minute) => START + minute * MINUTE_MS))
  })

  test('[A79] a question that could not be asked is asked again, and by then the tick may be missed', () => {
    const { simulation, conditions } = simulated({})
    simulation.run(HOUR_MS)
    conditions.out = true
    conditions.answer(simulation, { verdict: 'unavailable' })
    expect(simulation.ticks()).toEqual([])
    simulation.run(100 * SECOND_MS)
    conditions.out = false
    simulation.run(5 * SECOND_MS)
    conditions.answer(simulation, holds)
    expect(recorded(simulation)).toEqual([['triggered', 'catch_up', null, null]])
  })

  test('[A79] a tick that waits when the schedule is removed from the code is skipped, and the code is not asked', () => {
    const { simulation, conditions } = simulated({})
    conditions.out = true
    simulation.run(HOUR_MS + 5 * SECOND_MS)
    simulation.remove()
    simulation.run(5 * SECOND_MS)
    const reason = 'nightly was removed from the code before this tick was decided'
    expect(recorded(simulation)).toEqual([['skipped', 'cron', 'code_removed', reason]])
    expect(conditions.asked).toEqual([])
  })

  test('[A66] asks nothing where the tick runs nothing anyway', () => {
    const { simulation, conditions } = simulated({ asset_selection: ['ordrs'] })
    simulation.run(HOUR_MS)
    expect(conditions.asked).toEqual([])
    expect(recorded(simulation)).toMatchObject([['failed', 'cron', 'bad_selection', expect.any(String)]])
  })

  test('[A66] fails in a process that can evaluate nothing, and says so', () => {
    const simulation = new ScheduleSimulation(START)
    simulation.define(hourly)
    simulation.run(2 * HOUR_MS)
    expect(recorded(simulation)).toMatchObject([
      [
        'failed',
        'cron',
        'condition_error',
        expect.stringContaining('its condition could not be evaluated: this server does not run project code'),
      ],
      ['failed', 'cron', 'condition_error', expect.any(String)],
    ])
  })
})
