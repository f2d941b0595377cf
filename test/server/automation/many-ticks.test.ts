import { describe, expect, test } from 'vitest'
import { scheduleController } from '../../../src/domain/schedules/schedule.controller.ts'
import { HOUR_MS } from '../../../src/lib/time.ts'
import { ScheduleSimulation, simulatedRequest } from '../../../src/testing/schedule-simulation.ts'
import { Led } from '../led.ts'

const assets = [{ asset_key: 'orders', kind: 'asset' as const }]
const TICKS = 45
/** The run request of each tick is so large that these few ticks take more than a segment. */
const minutely = {
  name: 'minutely',
  cron_expressions: ['* * * * *'],
  asset_selection: ['orders'],
  max_catchup_ticks: TICKS,
  catch_up_on_resume: true,
  labels: Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`label${i}`, 'x'.repeat(8_192)])),
}

interface Recorded {
  readonly event_type: string
  readonly payload: { tick_id?: string; status?: string; trigger_source_ref?: { tick_id?: string } }
}

async function segments(led: Led): Promise<Recorded[][]> {
  const found: Recorded[][] = []
  for await (const { path } of led.memory.store.list(led.paths.ledger)) {
    const bytes = await led.memory.store.get(path)
    found.push((JSON.parse(new TextDecoder().decode(bytes)) as { events: Recorded[] }).events)
  }
  return found
}

describe('more ticks at once than a segment can hold', () => {
  test('[A1] are several segments, and each tick is in one with its run request', async () => {
    const led = await Led.open({ assets, schedules: [minutely] }, { automation: true })
    await led.post('/automation/pause', {})
    await led.clock.advance(HOUR_MS)
    await led.post('/automation/resume', {})
    await led.clock.advance(1_000)
    const written = await segments(led)
    const ticked = written.filter((events) => events.some(({ payload }) => payload.status === 'triggered'))
    expect(ticked.length).toBeGreaterThan(1)
    const parted = ticked.flatMap((events) => {
      const asked = new Set(events.map(({ payload }) => payload.trigger_source_ref?.tick_id))
      return events.flatMap(({ payload: { status, tick_id } }) =>
        status === 'triggered' && !asked.has(tick_id) ? [tick_id] : [],
      )
    })
    expect(parted).toEqual([])
    expect(ticked.flat().filter(({ payload }) => payload.status === 'triggered')).toHaveLength(TICKS)
  })
})

test('[O1] after a long outage a schedule decides on 2,000 ticks at a time, oldest first, each together with its run request', () => {
  const simulation = new ScheduleSimulation(Date.UTC(2025, 2, 28, 12))
  simulation.define({ cron_expressions: ['* * * * * *'], max_catchup_ticks: 4_500 })
  simulation.wait(2 * HOUR_MS)
  const controller = scheduleController({ requestRun: simulatedRequest })
  const rows = simulation.bench.state
  for (const table of controller.watches) for (const row of rows.hotTable(table).all()) controller.observe(table, row)
  const rounds = Array.from({ length: 4 }, () => controller.decide({ rows, now: simulation.now, lagMs: 0 }))
  expect(rounds.map((decided) => decided.length)).toEqual([2_000, 2_000, 502, 0])
  const [skipped, ...ticks] = rounds.flat().map((decision) => [decision].flat().map(({ definition }) => definition.type))
  expect(skipped).toEqual(['ScheduleTicksSkipped'])
  expect(new Set(ticks.map(String))).toEqual(new Set(['ScheduleTicked,RunRequested']))
})
