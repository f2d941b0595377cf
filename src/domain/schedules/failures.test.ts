import { expect, test } from 'vitest'
import { HOUR_MS, MINUTE_MS } from '../../lib/time.ts'
import { ScheduleSimulation } from '../../testing/schedule-simulation.ts'

const START = Date.UTC(2025, 0, 2)
const hourly = { cron_expressions: ['0 * * * *'] }

test('[A14] a schedule whose runs failed so many times in a row pauses itself and says why; resumed, it counts anew', () => {
  const simulation = new ScheduleSimulation(START)
  simulation.define({ ...hourly, pause_after: 2 })
  simulation.run(HOUR_MS)
  simulation.failRuns()
  expect(simulation.state().status).toBe('ACTIVE')
  simulation.run(HOUR_MS)
  simulation.failRuns()
  expect(simulation.state()).toMatchObject({ status: 'PAUSED', status_changed_by: 'servo' })
  expect(simulation.state().status_reason).toContain('last 2 runs failed')
  simulation.setPaused(false)
  simulation.run(HOUR_MS)
  simulation.failRuns()
  expect(simulation.state().status).toBe('ACTIVE')
})

test('[A14] failures that a clock recorded ahead of time are over when the schedule is resumed', () => {
  const simulation = new ScheduleSimulation(START)
  simulation.define({ ...hourly, pause_after: 2 })
  const failTwice = () => {
    for (const _ of [1, 2]) {
      simulation.run(HOUR_MS)
      simulation.failRuns()
    }
  }
  simulation.jump(5 * HOUR_MS)
  simulation.failRuns()
  failTwice()
  expect(simulation.state().status).toBe('PAUSED')
  simulation.wait(-7 * HOUR_MS)
  simulation.setPaused(false)
  const before = simulation.triggered().length
  simulation.run(HOUR_MS)
  expect(simulation.state().status).toBe('ACTIVE')
  expect(simulation.triggered()).toHaveLength(before + 1)
  simulation.failRuns()
  simulation.run(HOUR_MS)
  simulation.failRuns()
  expect(simulation.state()).toMatchObject({ status: 'PAUSED', status_changed_by: 'servo' })
})

test('[A14] failures count although many later runs have not ended', () => {
  const simulation = new ScheduleSimulation(START)
  simulation.define({ cron_expressions: ['* * * * *'], pause_after: 3 })
  simulation.run(30 * MINUTE_MS)
  const first = simulation.runs().slice(0, 3)
  expect(simulation.runs()).toHaveLength(30)
  for (const run of first) simulation.failRun(run)
  expect(simulation.state()).toMatchObject({ status: 'PAUSED', status_changed_by: 'servo' })
})
