import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { pythonWithOtlp } from '../../python.ts'
import { TestProject } from '../support/project.ts'
import type { Servo } from '../support/servo.ts'
import { until } from '../support/until.ts'

/** Every place in which a secret could be left behind has one of its own. */
const CANARIES = {
  SHOP_API_TOKEN: 'canary-env-4f9a',
  ALERT_SECRET: 'canary-sign-77d2',
  ALERT_URL: '',
  OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20canary-otlp-91c3',
  HOOK_SECRET: 'canary-hook-5b1e',
}
const IN_ADDRESS = 'canary-address-c0de'
const IN_MESSAGE = 'canary-message-77aa'
const SEARCHED = ['canary-env-4f9a', 'canary-sign-77d2', 'canary-otlp-91c3', 'canary-hook-5b1e', IN_ADDRESS, IN_MESSAGE]

const CALLER = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'

const CONFIG = `import { defineConfig } from 'servo-flow'
export default defineConfig({ project: 'shop', dirs: ['assets'], alerts: [
  { name: 'oncall', on: ['run.failed'], to: { env: 'ALERT_URL' }, secret: 'ALERT_SECRET', allowPrivate: true },
] })
`
const ASSETS = `import { asset, command, run, schedule, sensor, webhook } from 'servo-flow'
import { z } from 'zod'
export const orders = asset('orders', { run: ({ traceparent }) => ({ traceparent }) })
export const printed = command('printed', { deps: [orders], run: ['sh', '-c', 'echo "$TRACEPARENT" >> traces.txt'] })
export const bad = asset('bad', { run() {
  console.log('printed with ' + process.env.SHOP_API_TOKEN)
  throw new Error('refused with ' + process.env.SHOP_API_TOKEN + ' at ' + process.env.ALERT_URL)
} })
export const each = schedule('each', { cron: '*/2 * * * * *', select: [orders, printed] })
export const hook = sensor.push('hook', {
  source: webhook({ path: 'hook', schema: z.object({ note: z.string() }), secret: 'HOOK_SECRET', verify: 'token' }),
  on: () => ({ runs: [run(orders)] }),
})
`

/** Decodes what the collector was sent with the messages that OpenTelemetry publishes for Python. */
const DECODE = `
import json, sys, base64
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
def value(v):
    return getattr(v, v.WhichOneof('value'))
spans = []
for line in sys.stdin:
    request = ExportTraceServiceRequest.FromString(base64.b64decode(line))
    for rs in request.resource_spans:
        resource = {a.key: value(a.value) for a in rs.resource.attributes}
        for ss in rs.scope_spans:
            for s in ss.spans:
                spans.append({'trace': s.trace_id.hex(), 'span': s.span_id.hex(), 'parent': s.parent_span_id.hex(), 'name': s.name,
                    'ms': (s.end_time_unix_nano - s.start_time_unix_nano) / 1e6, 'attributes': {a.key: value(a.value) for a in s.attributes},
                    'service': resource['service.name'], 'code': s.status.code, 'message': s.status.message})
print(json.dumps(spans))
`

interface Decoded {
  readonly trace: string
  readonly span: string
  readonly parent: string
  readonly name: string
  readonly ms: number
  readonly service: string
  readonly code: number
  readonly message: string
  readonly attributes: Readonly<Record<string, unknown>>
}

const python = pythonWithOtlp('Spans are not decoded by the messages of OpenTelemetry')

describe.skipIf(python === undefined)('a server that is traced', () => {
  let project: TestProject
  let server: Servo
  const posted: Buffer[] = []
  const alerts: { headers: Record<string, unknown>; body: string }[] = []
  const answers: string[] = []
  const receiver = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const body = Buffer.concat(chunks)
      if (request.url === '/v1/traces') {
        expect(request.headers.authorization).toBe('Bearer canary-otlp-91c3')
        posted.push(body)
      } else alerts.push({ headers: request.headers, body: body.toString() })
      response.end()
    })
  })

  beforeAll(async () => {
    await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve))
    const { port } = receiver.address() as AddressInfo
    project = new TestProject({ 'servo.config.ts': CONFIG, 'assets/all.ts': ASSETS })
    server = project.begin(['start', '--port', '0', '--log-format', 'json'], {
      ...CANARIES,
      ALERT_URL: `http://127.0.0.1:${port}/alerts/${IN_ADDRESS}`,
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}`,
      OTEL_SERVICE_NAME: 'shop-servo',
      OTEL_BSP_SCHEDULE_DELAY: '50',
    })
    await server.says(/"message":"server ready"/)
  })
  afterAll(async () => {
    receiver.close()
    await project.end()
  })

  /** Python takes a while to start, so that it is asked only when there is something new. */
  let decoded: { readonly posts: number; readonly spans: Decoded[] } = { posts: 0, spans: [] }
  const spans = (): Decoded[] => {
    if (decoded.posts === posted.length) return decoded.spans
    const input = posted.map((body) => `${body.toString('base64')}\n`).join('')
    decoded = { posts: posted.length, spans: JSON.parse(execFileSync(python ?? '', ['-c', DECODE], { input }).toString()) }
    return decoded.spans
  }
  const ask = async (route: string, init: RequestInit = {}): Promise<Response> => {
    const response = await fetch(`${await url()}${route}`, {
      ...init,
      headers: { authorization: `Bearer ${project.token}`, ...init.headers },
    })
    answers.push(await response.clone().text())
    return response
  }
  const url = async (): Promise<string> =>
    (JSON.parse(server.shown.split('\n').find((line) => line.includes('server ready')) ?? '{}') as { url: string }).url
  /** The span that is above another. */
  const above = (all: readonly Decoded[], span: Decoded | undefined): Decoded | undefined =>
    all.find((each) => each.trace === span?.trace && each.span === span.parent)

  test('[H8] shows one tree: tick, run, task, attempt, and what the attempt starts', async () => {
    // The first of them: a busy machine may be behind with the others.
    const told = (): string =>
      project.has('traces.txt') ? (fs.readFileSync(project.file('traces.txt'), 'utf8').split('\n')[0] ?? '') : ''
    await until(() => told() !== '')
    const [, trace = '', span = ''] = told().split('-')
    let all: Decoded[] = []
    await until(() => {
      all = spans()
      return all.some((each) => each.name === 'run' && each.trace === trace)
    })
    const attempt = all.find((each) => each.trace === trace && each.span === span)
    const task = above(all, attempt)
    const run = above(all, task)
    const tick = above(all, run)
    expect([attempt, task, run, tick].map((each) => each?.name)).toEqual([
      'attempt printed',
      'task printed',
      'run',
      'schedule tick',
    ])
    expect(tick).toMatchObject({ parent: '', service: 'shop-servo', attributes: { 'servo.schedule': 'each' } })
    expect(
      all
        .filter(({ parent }) => parent === tick?.span)
        .map(({ name }) => name)
        .sort(),
    ).toEqual(['append', 'fold', 'run'])
    expect(new Set(all.map((each) => each.trace + each.span)).size, 'each span is sent once').toBe(all.length)
  })

  test('[H8] continues the trace of a client and of the sender of a message', async () => {
    await ask('/api/v1/orchestration/runs', {
      method: 'POST',
      headers: { 'content-type': 'application/json', traceparent: CALLER },
      body: JSON.stringify({ select: ['bad'] }),
    })
    const sent = await ask('/hooks/default/default/hook', {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        authorization: `Bearer ${CANARIES.HOOK_SECRET}`,
        traceparent: '00-11111111111111111111111111111111-2222222222222222-01',
      },
      body: JSON.stringify({ note: IN_MESSAGE }),
    })
    expect(sent.status).toBe(200)
    let all: Decoded[] = []
    const ended = (trace: string): boolean => all.some((each) => each.trace.startsWith(trace) && each.name === 'run')
    await until(() => {
      all = spans()
      return ended('4bf92f35') && ended('11111111')
    })
    const named = (trace: string, name: string) => all.find((each) => each.trace.startsWith(trace) && each.name === name)
    expect(named('4bf92f35', 'run request')).toMatchObject({ parent: '00f067aa0ba902b7' })
    expect(named('4bf92f35', 'attempt bad')).toMatchObject({
      code: 2,
      message: expect.stringContaining('[redacted SHOP_API_TOKEN]'),
    })
    expect(named('11111111', 'sensor evaluation')).toMatchObject({ parent: '2222222222222222' })
    expect(above(all, named('11111111', 'run'))?.name).toBe('sensor evaluation')
  })

  test('[H10] sends the alert of the config, and servo alerts says that it arrived', async () => {
    await until(() => alerts.length > 0)
    expect(JSON.parse(alerts[0]?.body ?? '')).toMatchObject({ type: 'run.failed', data: { failed_tasks: ['bad'] } })
    const { code, stdout } = await project.servo('alerts', 'test')
    expect([code, stdout]).toEqual([0, 'delivered  oncall: it answered 200\n'])
    const listed = await project.json('alerts', 'list')
    expect(listed.map(({ kind, status }: Record<string, string>) => [kind, status])).toEqual([
      ['test', 'delivered'],
      ['run.failed', 'delivered'],
    ])
    answers.push(JSON.stringify(listed), (await project.servo('alerts', 'targets', '--json')).stdout)
  })

  test('[H12] leaves no secret in ledger, tables, logs, spans, alerts or answers, and every line of its log is JSON', async () => {
    for (const route of ['/alerts', '/alerts/targets', '/sensors/hook/evals', '/runs', '/sensors', '/schedules'])
      expect((await ask(`/api/v1/orchestration${route}`)).status).toBe(200)
    await ask('/metrics')
    await until(async () => Number((await project.query('select count(*) as n from alerts'))[0]?.['n']) === 2)
    server.kill('SIGTERM')
    const { code } = await server.ended
    expect(code).toBe(0)
    for (const line of server.shown.split('\n').filter((each) => each !== ''))
      expect(JSON.parse(line)).toMatchObject({
        time: expect.any(String),
        level: expect.any(String),
        message: expect.any(String),
      })
    const lines = server.shown.split('\n').filter((each) => each.includes('"run_id"'))
    for (const line of lines) expect(JSON.parse(line).trace_id).toMatch(/^[0-9a-f]{32}$/)
    const places: [string, Buffer][] = [
      ['log', Buffer.from(server.shown)],
      ['spans', Buffer.from(JSON.stringify(spans()))],
      ['alerts', Buffer.from(alerts.map(({ body }) => body).join('\n'))],
      ['answers', Buffer.from(answers.join('\n'))],
    ]
    for (const file of fs.readdirSync(project.file('.servo'), { recursive: true, encoding: 'utf8' })) {
      const full = path.join(project.file('.servo'), file)
      if (fs.statSync(full).isFile()) places.push([file, fs.readFileSync(full)])
    }
    expect(places.some(([file]) => file.endsWith('.parquet'))).toBe(true)
    const found = places.flatMap(([place, bytes]) =>
      SEARCHED.filter((secret) => bytes.includes(secret)).map((secret) => `${secret} in ${place}`),
    )
    expect(found).toEqual([])
  })
})
