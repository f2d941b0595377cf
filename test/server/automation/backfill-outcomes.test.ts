import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { DispatchEnvelope } from '../../../src/contract/dispatch.ts'
import { SECOND_MS } from '../../../src/lib/time.ts'
import { unpackSpans } from '../../../src/partitions/spans.ts'
import { Led } from '../led.ts'
import { failure } from '../world.ts'

const days = Array.from({ length: 28 }, (_, i) => new Date(Date.UTC(2024, 0, 1 + i)).toISOString().slice(0, 10))
const weeks = days.filter((_, i) => i % 7 === 0)
const daily = { type: 'daily', start: '2024-01-01', end: '2024-01-29', timezone: 'UTC' } as const
const weekly = { type: 'weekly', start: '2024-01-01', end: '2024-01-29', timezone: 'UTC' } as const
const asset = (asset_key: string, more: object = {}) => ({ asset_key, kind: 'asset' as const, ...more })
const yesterday = { type: 'time_window', start_offset: -1, end_offset: -1 } as const

/** A week is the basis of days, each of which is made from the day before, and a sum of both. */
const project = {
  assets: [
    asset('wk', { partitions: weekly }),
    asset('side', { partitions: daily }),
    asset('chain', {
      partitions: daily,
      deps: [{ asset_key: 'wk' }, { asset_key: 'side' }, { asset_key: 'chain', mapping: yesterday }],
    }),
    asset('sum', { partitions: weekly, deps: [{ asset_key: 'chain' }] }),
  ],
}
const keysOf: Readonly<Record<string, readonly string[]>> = { wk: weeks, side: days, chain: days, sum: weeks }

function neededBy(name: string, at: number): string[] {
  const week = weeks[Math.floor(at / 7)]
  if (name === 'chain') return [`wk[${week}]`, `side[${days[at]}]`, ...(at > 0 ? [`chain[${days[at - 1]}]`] : [])]
  return name === 'sum' ? days.slice(at * 7, at * 7 + 7).map((day) => `chain[${day}]`) : []
}

type Outcomes = Record<string, 'failed' | 'skipped'>

/** What must become of each partition, however the backfill is cut. Those that are not named succeed. */
function expectedOutcomes(failing: ReadonlySet<string>): Outcomes {
  const outcomes: Outcomes = {}
  for (const [name, keys] of Object.entries(keysOf)) {
    for (const [at, key] of keys.entries()) {
      const task = `${name}[${key}]`
      if (neededBy(name, at).some((needed) => outcomes[needed] !== undefined)) outcomes[task] = 'skipped'
      else if (failing.has(task)) outcomes[task] = 'failed'
    }
  }
  return outcomes
}

const taskOf = ({ asset_key, partition }: DispatchEnvelope): string => `${asset_key}[${partition?.key}]`

/** Runs it once without failures if asked to, so that old values exist, and then with them. */
async function outcomesOf(failing: ReadonlySet<string>, body: object, wasMade: boolean): Promise<Outcomes> {
  let isFailing = !wasMade
  const script = (envelope: DispatchEnvelope) =>
    isFailing && failing.has(taskOf(envelope)) ? { ms: 10, result: failure({ retryable: false }) } : { ms: 10 }
  const led = await Led.open(project, { automation: true }, script)
  led.server.orchestrator.projectKnown()
  const over = async (more: object) => {
    const { body: made } = await led.post('/backfills', { select: ['*'], partitions: { type: 'all' }, ...more })
    for (;;) {
      const { body: shown } = await led.get(`/backfills/${made.backfill_id}`)
      if (['SUCCEEDED', 'FAILED'].includes(shown.backfill.state)) return shown
      await led.clock.advance(SECOND_MS)
    }
  }
  if (wasMade) expect((await over({ chunk_size: 100 })).backfill.state).toBe('SUCCEEDED')
  isFailing = true
  const { backfill, assets } = await over(body)
  expect(backfill.state).toBe(failing.size === 0 ? 'SUCCEEDED' : 'FAILED')
  const found: Outcomes = {}
  for (const row of assets) {
    const keys = keysOf[row.asset_key] ?? []
    for (const outcome of ['failed', 'skipped'] as const) {
      const { positions, keys: named } = row[outcome]
      for (const { from, to } of unpackSpans(positions).list)
        for (const key of keys.slice(from, to + 1)) found[`${row.asset_key}[${key}]`] = outcome
      for (const key of named) found[`${row.asset_key}[${key}]`] = outcome
    }
  }
  return found
}

describe('what becomes of a partition', () => {
  test.each([7, 28])(
    '[A82] a chain does not go on with old values where a day was skipped for another reason: chunks of %i',
    async (chunk_size) => {
      const failing = new Set(['wk[2024-01-08]'])
      const outcomes = await outcomesOf(failing, { chunk_size }, true)
      expect(outcomes).toEqual(expectedOutcomes(failing))
      expect(outcomes).toMatchObject({
        'chain[2024-01-08]': 'skipped',
        'chain[2024-01-28]': 'skipped',
        'sum[2024-01-22]': 'skipped',
      })
    },
  )

  test('[A82] does not depend on the size of chunks, on how many run at a time, or on what was made before', async () => {
    const tasks = Object.entries(keysOf).flatMap(([name, keys]) => keys.map((key) => `${name}[${key}]`))
    const property = fc.asyncProperty(
      fc.subarray(tasks, { minLength: 0, maxLength: 4 }),
      fc.constantFrom(1, 2, 5, 7, 10, 28, 100),
      fc.integer({ min: 1, max: 4 }),
      fc.boolean(),
      async (failing, chunk_size, max_concurrent_runs, wasMade) => {
        const outcomes = await outcomesOf(new Set(failing), { chunk_size, max_concurrent_runs }, wasMade)
        expect(outcomes).toEqual(expectedOutcomes(new Set(failing)))
      },
    )
    await fc.assert(property, { numRuns: Number(process.env['SERVO_RUNS'] ?? 6) })
  })
})
