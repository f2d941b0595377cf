import { describe, expect, test } from 'vitest'
import { HOUR_MS } from '../../../lib/time.ts'
import { ScheduleSimulation } from '../../../testing/schedule-simulation.ts'

const hourly = { cron_expressions: ['0 * * * *'], timezone: 'UTC' }

/** A schedule that has ticked once; the run of that tick goes on, and the next tick is prepared. */
function tickedOnce(overlap: 'skip' | null): ScheduleSimulation {
  const simulation = new ScheduleSimulation(Date.UTC(2025, 0, 2))
  simulation.define({ ...hourly, overlap })
  simulation.run(1.5 * HOUR_MS)
  return simulation
}

describe('a tick that was prepared', () => {
  test('is what it would have been', () => {
    const simulation = tickedOnce('skip')
    simulation.run(HOUR_MS)
    expect(simulation.ticks()).toMatchObject([{ status: 'triggered' }, { status: 'skipped', reason_code: 'overlap' }])
  })

  test('does not count if a run has ended since', () => {
    const simulation = tickedOnce('skip')
    simulation.failRuns()
    simulation.run(HOUR_MS)
    expect(simulation.ticks()).toMatchObject([{ status: 'triggered' }, { status: 'triggered' }])
  })

  test('does not count if a run has ended since, and a clock was ahead before', () => {
    const simulation = new ScheduleSimulation(Date.UTC(2025, 0, 2))
    simulation.define({ ...hourly, overlap: 'skip' })
    simulation.jump(9 * HOUR_MS)
    simulation.failRuns()
    simulation.wait(-9 * HOUR_MS)
    simulation.run(1.5 * HOUR_MS)
    simulation.failRuns()
    simulation.run(HOUR_MS)
    expect(simulation.triggered()).toContain(Date.UTC(2025, 0, 2, 2))
  })

  test('does not count if the schedule was changed since', () => {
    const simulation = tickedOnce(null)
    simulation.define({ ...hourly, labels: { team: 'finance' } })
    simulation.run(HOUR_MS)
    const [first, second] = simulation.ticks()
    expect(second?.definition_version).not.toBe(first?.definition_version)
  })

  test('does not count if the assets were changed since', () => {
    const simulation = tickedOnce(null)
    simulation.assets({ orders: { type: 'daily', start: '2025-01-01' } })
    simulation.run(HOUR_MS)
    expect(simulation.ticks()).toMatchObject([{ partition_selection: null }, { partition_selection: ['2025-01-01'] }])
  })
})
