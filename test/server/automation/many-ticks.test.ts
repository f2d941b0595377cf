import { describe, expect, test } from 'vitest'
import { HOUR_MS } from '../../../src/lib/time.ts'
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
