import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import { systemClock } from '../../adapters/system/clock.ts'
import { messageOf } from '../../lib/error.ts'
import { spansAsJson } from '../../lib/otlp/json.ts'
import type { TraceSpan } from '../../lib/otlp/span.ts'
import { SpanExporter } from './span-exporter.ts'

const GRACE_MS = 60_000
/** For a machine that is busy. */
const PATIENT = { timeout: 60_000 }

const span = (n: number): TraceSpan => ({
  traceId: 'a'.repeat(32),
  spanId: String(n).padStart(16, '0'),
  name: `s${n}`,
  kind: 'internal',
  startMs: 0,
  endMs: 1,
  attributes: {},
  outcome: 'unset',
})

async function collector(answer: RequestListener): Promise<string> {
  const server = createServer(answer)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/traces`
}

function exporterTo(url: string, limits: { maxQueue?: number; maxBatch?: number; delayMs?: number } = {}) {
  const counted = { exported: 0, queue_full: 0, not_taken: 0 }
  const told: string[] = []
  const exporter = new SpanExporter({
    settings: {
      ...{ url, protocol: 'http/json', headers: {}, gzip: false, timeoutMs: 60_000, maxQueue: 10, maxBatch: 10, delayMs: 5 },
      ...{ resource: {}, isSampled: () => true },
      ...limits,
    },
    // Pauses between tries are over at once, and the grace never is.
    clock: { ...systemClock, sleep: (ms) => (ms === GRACE_MS ? new Promise(() => undefined) : Promise.resolve()) },
    resource: {},
    scope: 'test',
    encode: spansAsJson,
    onExported: (spans) => (counted.exported += spans),
    onDropped: (spans, reason) => (counted[reason] += spans),
    onTrouble: (error) => told.push(messageOf(error)),
  })
  return { exporter, counted, told }
}

describe('the exporter of spans', () => {
  test('[H9] sends them in batches, again when the collector asks for that, and what is left when it is closed', async () => {
    const names: string[][] = []
    let busy = 2
    const url = await collector((request, response) => {
      let body = ''
      request.on('data', (chunk) => (body += chunk))
      request.on('end', () => {
        if (busy-- > 0) {
          response.writeHead(503).end()
          return
        }
        names.push(JSON.parse(body).resourceSpans[0].scopeSpans[0].spans.map(({ name }: TraceSpan) => name))
        response.end('{}')
      })
    })
    // Only a full batch or the end has anything sent.
    const { exporter, counted, told } = exporterTo(url, { maxBatch: 2, delayMs: 3_600_000 })
    for (const n of [1, 2, 3]) exporter.add(span(n))
    await expect.poll(() => names, PATIENT).toEqual([['s1', 's2']])
    await exporter.close(GRACE_MS)
    expect([names.flat(), counted]).toEqual([['s1', 's2', 's3'], { exported: 3, queue_full: 0, not_taken: 0 }])
    expect(told).toEqual([])
  })

  test('[H9] drops what finds the queue full, and counts it', async () => {
    const url = await collector(() => undefined)
    const { exporter, counted } = exporterTo(url, { maxQueue: 3, maxBatch: 2 })
    for (const n of [1, 2, 3, 4, 5, 6, 7]) exporter.add(span(n))
    expect(counted.queue_full).toBeGreaterThan(0)
    expect(counted.queue_full).toBeLessThan(7)
  })

  test('[H9] tells once of a collector that is not there, and goes on', async () => {
    const { exporter, counted, told } = exporterTo('http://127.0.0.1:9/v1/traces', { maxBatch: 1 })
    exporter.add(span(1))
    await expect.poll(() => counted.not_taken, PATIENT).toBe(1)
    exporter.add(span(2))
    await expect.poll(() => counted.not_taken, PATIENT).toBe(2)
    expect(told).toEqual([expect.stringContaining('the trace collector at http://127.0.0.1:9 takes no spans')])
  })
})
