import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { TestProject } from '../support/project.ts'
import { lacksPromtool, promtoolSays } from '../support/promtool.ts'
import type { Servo } from '../support/servo.ts'
import { until } from '../support/until.ts'

const AUTOMATED = `import { asset, run, schedule, sensor, webhook } from 'servo-flow'
import { z } from 'zod'
export const a = asset('a', { run: () => 1 })
export const bad = asset('bad', { run() { throw new Error('no such column') } })
export const each = schedule('each', { cron: '* * * * * *', select: a })
export const files = sensor.poll('files', {
  every: '1s',
  cursor: z.number(),
  poll: ({ cursor }) => (cursor === undefined ? { cursor: 1, runs: [run(a)] } : { runs: [] }),
})
export const told = sensor.push('told', {
  source: webhook({ path: 'told', verify: 'none', schema: z.object({}) }),
  on: () => ({ runs: [] }),
})
`

describe('a server that is watched', () => {
  let project: TestProject
  let dev: Servo
  beforeAll(async () => {
    project = new TestProject({ 'assets/all.ts': AUTOMATED })
    dev = await project.dev()
  })
  afterAll(() => project.end())

  const ask = (path: string, headers: Record<string, string> = {}) => fetch(`${dev.url}${path}`, { headers })
  const metrics = async () => await (await ask('/metrics', { authorization: `Bearer ${project.token}` })).text()
  const value = (text: string, sample: string): number => {
    const line = text.split('\n').find((each) => each.startsWith(`${sample} `))
    if (line === undefined) throw new Error(`there is no ${sample} in\n${text}`)
    return Number(line.slice(sample.length))
  }

  test('[H1] is alive and ready, and says so to anybody', async () => {
    expect(await (await ask('/health/live')).json()).toEqual({ ok: true, instance: expect.any(String) })
    expect(await (await ask('/health/ready')).json()).toEqual({ ok: true })
  })

  test('[H4] shows its metrics to nobody without the token', async () => {
    const answer = await ask('/metrics')
    expect(answer.status).toBe(401)
    expect(await answer.json()).toMatchObject({ code: 'unauthenticated' })
  })

  test('[H2] counts ticks, evaluations, and runs that succeeded and failed', async () => {
    const runId = await project.request('bad')
    await until(async () => (await project.shown(runId)).run['state'] === 'FAILED')
    const event = { specversion: '1.0', id: 'm1', source: 'shop', type: 'told', data: {} }
    const sent = await fetch(`${dev.url}/hooks/default/default/told`, {
      method: 'POST',
      headers: { 'content-type': 'application/cloudevents+json' },
      body: JSON.stringify({ ...event, time: new Date(Date.now() - 1_500).toISOString() }),
    })
    expect(sent.status).toBe(200)
    const waited = [
      'schedule_ticks_total{status="triggered"}',
      'schedule_tick_delay_seconds_count',
      'sensor_evals_total{sensor_type="poll",status="triggered"}',
      'run_requests_total{source="schedule"}',
      'run_requests_total{source="sensor"}',
      'servo_runs_total{status="succeeded"}',
      'servo_publishes_total{status="succeeded"}',
      'compaction_lag_seconds_count',
      'servo_event_loop_lag_seconds_count',
    ]
    await until(async () => {
      const text = await metrics()
      return waited.every((sample) => value(text, sample) > 0)
    })
    const text = await metrics()
    expect(value(text, 'run_requests_total{source="manual"}')).toBe(1)
    expect(value(text, 'servo_runs_total{status="failed"}')).toBe(1)
    expect(value(text, 'sensor_evals_total{sensor_type="poll",status="triggered"}')).toBe(1)
    expect(value(text, 'sensor_evals_total{sensor_type="push",status="no_data"}')).toBe(1)
    // It was published more than a second before it was sent.
    expect(value(text, 'sensor_push_latency_seconds_bucket{le="1"}')).toBe(0)
    expect(value(text, 'sensor_push_latency_seconds_count')).toBe(1)
    expect(value(text, 'servo_store_requests_total{kind="create"}')).toBeGreaterThan(0)
    expect(value(text, 'process_resident_memory_bytes')).toBeGreaterThan(1e6)
    expect(value(text, 'servo_http_requests_total{method="GET",route="/metrics",status="401"}')).toBe(1)
  })

  test.skipIf(lacksPromtool)("[H3] has metrics that Prometheus' own checker accepts", async () => {
    expect(promtoolSays(await metrics())).toBe('')
    expect(promtoolSays('bad-name 1')).not.toBe('')
  })
})

test('[H1] a server whose project does not load is alive and not ready, until the project is repaired', async () => {
  const project = new TestProject({ 'assets/x.ts': 'export const x = (\n' })
  try {
    const dev = await project.dev()
    const ready = () => fetch(`${dev.url}/health/ready`)
    const answer = await ready()
    expect([answer.status, answer.headers.get('content-type')]).toEqual([503, 'application/problem+json'])
    expect(await answer.json()).toMatchObject({
      code: 'not_ready',
      detail: 'this server is not ready: the project is not loaded',
    })
    expect((await fetch(`${dev.url}/health/live`)).status).toBe(200)
    project.write('assets/x.ts', AUTOMATED)
    await until(async () => (await ready()).status === 200)
  } finally {
    await project.end()
  }
})
