import { describe, expect, test } from 'vitest'
import { verifyStandard } from '../../../src/api/hooks/standard-webhooks.ts'
import type { AlertDefinitionInput } from '../../../src/contract/alert.ts'
import type { AttemptResultInput } from '../../../src/contract/dispatch.ts'
import { type ProjectManifestInput, projectManifest } from '../../../src/contract/project-manifest.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../../src/lib/time.ts'
import type { Answered, Outgoing } from '../../../src/server/leader/alerts/outgoing.ts'
import { loadSecrets } from '../../../src/server/leader/load-secrets.ts'
import { Server } from '../../../src/server/server.ts'
import { memoryComponents } from '../../../src/testing/memory-components.ts'
import { ScriptedEvaluator } from '../../../src/testing/scripted-evaluator.ts'
import { ScriptedLease } from '../../../src/testing/scripted-lease.ts'
import { type Scripted, ScriptedWorkers } from '../../../src/testing/scripted-workers.ts'
import { VirtualClock } from '../../../src/testing/virtual-clock.ts'

const SECRET = `whsec_${Buffer.from('a key that is long enough').toString('base64')}`
const assets = ['mart/revenue', 'raw/orders'].map((asset_key) => ({ asset_key, kind: 'asset' as const }))
const failed = (message = 'no luck'): AttemptResultInput => ({
  outcome: 'FAILED',
  error: { category: 'user', message, retryable: false },
})
const oncall: AlertDefinitionInput = {
  name: 'oncall',
  on: ['run.failed', 'check.failed', 'schedule.late', 'sensor.failing', 'backfill.succeeded', 'backfill.failed', 'asset.stale'],
  to: { url: 'https://alerts.example/servo' },
  secrets: ['ALERT_SECRET'],
}

interface Given extends Omit<ProjectManifestInput, 'project' | 'assets'> {
  readonly assets?: ProjectManifestInput['assets']
}

/** A server on virtual time that is killed and started again, and whose alerts the test receives. */
class Alerted {
  readonly clock = new VirtualClock()
  readonly memory = memoryComponents(this.clock)
  readonly sent: (Outgoing & { at: number })[] = []
  readonly evaluator = new ScriptedEvaluator(this.clock)
  answer: (outgoing: Outgoing) => Answered = () => ({ status: 204 })
  attempt: () => Scripted = () => ({ result: failed() })
  server!: Server
  #lease = new ScriptedLease()
  #starts = 0

  static async open(project: Given = { alerts: [oncall] }): Promise<Alerted> {
    const alerted = new Alerted()
    await alerted.start(project)
    return alerted
  }

  async start(project: Given): Promise<void> {
    this.#lease.lose({ notifies: false })
    this.#starts += 1
    this.#lease = new ScriptedLease(this.#starts)
    const { secrets } = await loadSecrets(this.memory)
    this.server = await Server.open({
      components: this.memory,
      lease: this.#lease,
      secrets,
      instance: `server-${this.#starts}`,
      workers: new ScriptedWorkers(this.clock, () => this.attempt()),
      concurrency: () => 8,
      automation: project.schedules !== undefined || project.sensors !== undefined,
      evaluator: this.evaluator,
      environment: { ALERT_SECRET: SECRET, SLACK_URL: 'https://hooks.slack.example/T0/secret' },
      send: async (outgoing) => {
        this.sent.push({ ...outgoing, at: this.clock.now() })
        return this.answer(outgoing)
      },
    })
    await this.server.define(projectManifest.parse({ project: 'shop', assets, ...project }))
    await this.clock.advance(SECOND_MS)
  }

  async run(key: string, selection = '*', labels: Record<string, string> = {}): Promise<string> {
    const { run_id } = await this.server.api.runs.request({ select: [selection], key, labels }, 'tester')
    await this.clock.advance(SECOND_MS)
    return run_id
  }

  get types(): string[] {
    return this.sent.map(({ body }) => JSON.parse(body).type)
  }

  async listed() {
    return (await this.server.api.alerts.list({ limit: 50 })).alerts
  }
}

describe('an alert', () => {
  test('[H10] of a failed run is sent once it is durable, signed by Standard Webhooks, and is on record', async () => {
    const alerted = await Alerted.open()
    const run_id = await alerted.run('r1', 'raw/orders')
    const [sent] = alerted.sent
    expect(alerted.sent).toHaveLength(1)
    const voucher = verifyStandard({
      headers: new Headers(sent?.headers),
      body: Buffer.from(sent?.body ?? ''),
      secrets: [SECRET],
      now: alerted.clock.now(),
    })
    expect(voucher).toMatchObject({ id: sent?.headers['webhook-id'], isIdSigned: true })
    expect(JSON.parse(sent?.body ?? '')).toMatchObject({
      type: 'run.failed',
      data: { project: 'shop', run_id, failed_tasks: ['raw/orders'], error: 'no luck' },
    })
    expect(await alerted.listed()).toMatchObject([
      { alert_id: voucher.id, target: 'oncall', kind: 'run.failed', status: 'delivered', tries: 1, http_status: 204 },
    ])
    await alerted.start({ alerts: [oncall] })
    await alerted.clock.advance(HOUR_MS)
    expect(alerted.sent, 'a start repeats nothing').toHaveLength(1)
  })

  test('[H10] that does not arrive is sent again for a day with the same id, also after a restart, and then given up', async () => {
    const project = { alerts: [{ ...oncall, on: ['run.failed' as const] }] }
    const alerted = await Alerted.open(project)
    alerted.answer = () => ({ status: 500 })
    await alerted.run('r1', 'raw/orders')
    await alerted.clock.advance(10 * MINUTE_MS)
    expect(alerted.sent).toHaveLength(3)
    await alerted.start(project)
    expect(alerted.sent, 'it waits on').toHaveLength(3)
    await alerted.clock.advance(28 * HOUR_MS)
    expect(alerted.sent).toHaveLength(8)
    expect(new Set(alerted.sent.map(({ headers }) => headers['webhook-id'])).size).toBe(1)
    expect(alerted.sent.at(-1)?.at).toBeGreaterThan((alerted.sent[0]?.at ?? 0) + DAY_MS)
    const alertId = alerted.sent[0]?.headers['webhook-id'] ?? ''
    const end = { status: 'failed', tries: 8, error: 'it answered 500', next_try_at: null }
    expect(await alerted.server.api.alerts.get(alertId)).toMatchObject(end)
  })

  test('[H10] waits as long as its receiver asks, and ends where it wants nothing more', async () => {
    const alerted = await Alerted.open()
    alerted.answer = () => ({ status: 429, retryAfterMs: HOUR_MS })
    await alerted.run('r1', 'raw/orders')
    await alerted.clock.advance(59 * MINUTE_MS)
    expect(alerted.sent).toHaveLength(1)
    alerted.answer = () => ({ status: 410 })
    await alerted.clock.advance(2 * MINUTE_MS)
    expect(await alerted.listed()).toMatchObject([{ status: 'failed', tries: 2, http_status: 410 }])
  })

  test('[H10] of failed checks comes when the run ends, with all of them, also if the run succeeds', async () => {
    const alerted = await Alerted.open()
    const checks = [{ name: 'fresh', ok: false, severity: 'warn' as const }]
    alerted.attempt = () => ({ result: { outcome: 'SUCCEEDED', output: { metadata: {}, checks } } })
    await alerted.run('r1')
    expect(alerted.types).toEqual(['check.failed'])
    expect(JSON.parse(alerted.sent[0]?.body ?? '').data).toMatchObject({
      severity: 'warn',
      checks: ['mart/revenue: fresh', 'raw/orders: fresh'],
    })
  })

  test('[H10] is limited by assets and labels, and what happened before it was declared is no news', async () => {
    const alerted = await Alerted.open({ alerts: [] })
    await alerted.run('before', 'mart/revenue', { team: 'shop' })
    const limited = { ...oncall, on: ['run.failed'] as const, select: ['mart/*'], labels: { team: 'shop' } }
    await alerted.server.define(
      projectManifest.parse({ project: 'shop', assets, alerts: [{ ...limited, on: ['run.failed'] }] }),
    )
    await alerted.run('other asset', 'raw/orders', { team: 'shop' })
    await alerted.run('other team', 'mart/revenue', { team: 'ops' })
    expect(alerted.sent).toEqual([])
    await alerted.run('meant', 'mart/revenue', { team: 'shop' })
    expect(alerted.types).toEqual(['run.failed'])
  })

  test('[H10] of a schedule comes when its tick was missed for more than five minutes, once', async () => {
    const nightly = { name: 'nightly', cron_expressions: ['0 5 * * *'], asset_selection: ['raw/orders'] }
    const project = { schedules: [nightly], alerts: [{ ...oncall, on: ['schedule.late' as const] }] }
    const alerted = await Alerted.open(project)
    alerted.attempt = () => ({})
    await alerted.clock.advance(6 * HOUR_MS)
    expect(alerted.sent, 'it was on time').toEqual([])
    await alerted.server.close()
    await alerted.clock.advance(DAY_MS)
    await alerted.start(project)
    await alerted.clock.advance(HOUR_MS)
    expect(alerted.types).toEqual(['schedule.late'])
    expect(JSON.parse(alerted.sent[0]?.body ?? '').data).toMatchObject({
      schedule: 'nightly',
      scheduled_for: '2026-01-02T05:00:00.000Z',
    })
    await alerted.start(project)
    await alerted.clock.advance(HOUR_MS)
    expect(alerted.sent).toHaveLength(1)
  })

  test('[H10] of a sensor comes after three errors in a row, and again when it has worked in between', async () => {
    const files = { name: 'files', config: { type: 'poll' as const, every_ms: 60_000 } }
    const alerted = await Alerted.open({ sensors: [files], alerts: [{ ...oncall, on: ['sensor.failing'] }] })
    alerted.evaluator.script = () => ({ report: { outcome: 'error', error: 'no such bucket' } })
    await alerted.clock.advance(20 * MINUTE_MS)
    expect(alerted.types).toEqual(['sensor.failing'])
    expect(JSON.parse(alerted.sent[0]?.body ?? '').data).toMatchObject({ sensor: 'files', error: 'no such bucket' })
    alerted.evaluator.script = () => ({})
    await alerted.clock.advance(20 * MINUTE_MS)
    alerted.evaluator.script = () => ({ report: { outcome: 'error', error: 'again' } })
    await alerted.clock.advance(20 * MINUTE_MS)
    expect(alerted.types).toEqual(['sensor.failing', 'sensor.failing'])
  })

  test('[H10] of a stale asset comes when its freshness policy is broken, and again after it was fresh', async () => {
    const fresh = {
      asset_key: 'mart/revenue',
      kind: 'asset' as const,
      policies: { freshness: { type: 'within', within_ms: HOUR_MS } },
    }
    const project = { assets: [fresh], alerts: [{ ...oncall, on: ['asset.stale' as const] }] }
    const alerted = await Alerted.open(project)
    alerted.attempt = () => ({})
    await alerted.run('r1')
    await alerted.clock.advance(50 * MINUTE_MS)
    expect(alerted.sent).toEqual([])
    await alerted.clock.advance(20 * MINUTE_MS)
    expect(alerted.types).toEqual(['asset.stale'])
    await alerted.start(project)
    await alerted.clock.advance(HOUR_MS)
    expect(alerted.types, 'it was told').toEqual(['asset.stale'])
    await alerted.run('r2')
    await alerted.clock.advance(2 * HOUR_MS)
    expect(alerted.types).toEqual(['asset.stale', 'asset.stale'])
  })

  test('[H11] for Slack is a text, and neither its address nor a secret is on record', async () => {
    const slack: AlertDefinitionInput = { name: 'slack', on: ['run.failed'], to: { env: 'SLACK_URL' }, format: 'slack' }
    const alerted = await Alerted.open({ alerts: [slack, { ...slack, name: 'lost', to: { env: 'NOT_SET' } }] })
    alerted.attempt = () => ({ result: failed('<!channel> & <https://evil.example|click>') })
    await alerted.run('r1', 'raw/orders')
    const [sent] = alerted.sent
    expect(alerted.sent).toHaveLength(1)
    expect(sent).toMatchObject({ url: 'https://hooks.slack.example/T0/secret', allowPrivate: false })
    const { text } = JSON.parse(sent?.body ?? '')
    expect(text).toContain('&lt;!channel&gt; &amp; &lt;https://evil.example|click&gt;')
    const [delivered, lost] = [...(await alerted.listed())].sort((a, b) => ((a.target ?? '') > (b.target ?? '') ? -1 : 1))
    expect([delivered?.status, lost?.status, lost?.error]).toEqual(['delivered', 'pending', 'NOT_SET is not set'])
    const { targets } = await alerted.server.api.alerts.targets()
    expect(targets.map(({ name, problem }) => [name, problem])).toEqual([
      ['slack', null],
      ['lost', 'NOT_SET is not set'],
    ])
    for await (const { path } of alerted.memory.store.list('')) {
      const bytes = Buffer.from((await alerted.memory.store.get(path)) ?? [])
      for (const secret of ['hooks.slack.example', SECRET]) expect(bytes.includes(secret), path).toBe(false)
    }
  })

  test('[H10] can be tested, by name or all of them', async () => {
    const alerted = await Alerted.open({ alerts: [oncall] })
    const { alerts } = await alerted.server.api.alerts.test({}, 'ada')
    await alerted.clock.advance(SECOND_MS)
    expect(alerted.types).toEqual(['test'])
    expect(await alerted.server.api.alerts.get(alerts[0]?.alert_id ?? '')).toMatchObject({ status: 'delivered', kind: 'test' })
    await expect(alerted.server.api.alerts.test({ target: 'oncal' }, 'ada')).rejects.toMatchObject({
      hint: 'Did you mean oncall?',
    })
  })
})
