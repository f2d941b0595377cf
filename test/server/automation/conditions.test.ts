import { describe, expect, test } from 'vitest'
import type { EvaluationReport, EvaluationRequest, Evaluator } from '../../../src/contract/evaluation.ts'
import { HOUR_MS, MINUTE_MS, toIso } from '../../../src/lib/time.ts'
import { Led } from '../led.ts'

const assets = [{ asset_key: 'orders', kind: 'asset' as const }]
const hourly = { name: 'hourly', cron_expressions: ['0 * * * *'], asset_selection: ['orders'] }

/** A worker that answers when the test says so. */
class ScriptedEvaluator implements Evaluator {
  readonly requests: EvaluationRequest[] = []
  readonly #answers: ((report: EvaluationReport) => void)[] = []

  evaluate(request: EvaluationRequest): Promise<EvaluationReport> {
    this.requests.push(request)
    return new Promise((resolve) => this.#answers.push(resolve))
  }

  answer(report: EvaluationReport): void {
    this.#answers.shift()?.(report)
  }
}

async function open(evaluator?: Evaluator) {
  const schedules = [
    { ...hourly, name: 'guarded', has_condition: true },
    { ...hourly, name: 'free' },
  ]
  const led = await Led.open({ assets, schedules }, { automation: true, evaluator })
  const due = Math.floor(led.clock.now() / HOUR_MS + 1) * HOUR_MS
  await led.clock.advance(due - led.clock.now() + 100)
  const lastOf = async (name: string) => (await led.get(`/schedules/${name}`)).body.state
  return { led, due, lastOf }
}

describe('a server with a schedule that has a condition', () => {
  test('[A66] asks a worker about the tick; meanwhile other schedules tick', async () => {
    const evaluator = new ScriptedEvaluator()
    const { led, due, lastOf } = await open(evaluator)
    expect(evaluator.requests).toMatchObject([{ of: 'condition', schedule: 'guarded', scheduled_for: toIso(due) }])
    expect(await lastOf('guarded')).toMatchObject({ last_tick_status: null })
    expect(await lastOf('free')).toMatchObject({ last_tick_status: 'triggered' })
    evaluator.answer({ outcome: 'condition', holds: true })
    await led.clock.advance(100)
    expect(await lastOf('guarded')).toMatchObject({ last_tick_status: 'triggered', last_scheduled_for: toIso(due) })
  })

  test.each<[EvaluationReport, string, string]>([
    [{ outcome: 'condition', holds: false, reason: 'a holiday' }, 'skipped', 'a holiday'],
    [{ outcome: 'condition', holds: false }, 'skipped', 'its condition did not hold'],
    [{ outcome: 'error', error: 'no such table' }, 'failed', 'no such table'],
    [{ outcome: 'timed_out' }, 'failed', 'took longer than 30000 ms'],
    [{ outcome: 'requests', runs: [] }, 'failed', 'the worker answered something else'],
  ])('[A66] records %j as %s with the reason', async (report, status, reason) => {
    const evaluator = new ScriptedEvaluator()
    const { led, lastOf } = await open(evaluator)
    evaluator.answer(report)
    await led.clock.advance(100)
    const last = await lastOf('guarded')
    expect(last).toMatchObject({ last_tick_status: status, last_run_key: null })
    expect(last.last_tick_reason).toContain(reason)
    // The next tick is its own.
    await led.clock.advance(HOUR_MS)
    expect(evaluator.requests).toHaveLength(2)
  })

  test('[A66] records nothing of an evaluation that ended because the server closes', async () => {
    const evaluator = new ScriptedEvaluator()
    const { led, lastOf } = await open(evaluator)
    evaluator.answer({ outcome: 'cancelled' })
    await led.clock.advance(MINUTE_MS)
    expect(await lastOf('guarded')).toMatchObject({ last_tick_status: null })
  })

  test('[A66] asks no condition for a tick that a user asks for', async () => {
    const evaluator = new ScriptedEvaluator()
    const { led } = await open(evaluator)
    const { status, body } = await led.post('/schedules/guarded/trigger', {})
    expect([status, body.created]).toEqual([202, true])
    expect(evaluator.requests).toHaveLength(1)
  })

  test('[A66] without workers that run code lets the tick fail', async () => {
    const { lastOf } = await open()
    expect((await lastOf('guarded')).last_tick_reason).toContain('does not run project code')
  })
})
