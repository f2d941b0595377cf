import { describe, expect, test } from 'vitest'
import { spansAsJson } from './json.ts'
import { spansAsProtobuf } from './protobuf.ts'
import type { SpanBatch } from './span.ts'

const batch: SpanBatch = {
  resource: { 'service.name': 'servo' },
  scope: 'servo-flow',
  spans: [
    {
      traceId: '0af7651916cd43dd8448eb211c80319c',
      spanId: 'b7ad6b7169203331',
      parentSpanId: '00f067aa0ba902b7',
      name: 'run',
      kind: 'server',
      startMs: 1_794_990_000_123,
      endMs: 1_794_990_000_456,
      attributes: { text: 'ü', whole: -1, half: 0.5, yes: true },
      events: [{ name: 'started', atMs: 1_794_990_000_200 }],
      outcome: 'error',
      message: 'no luck',
    },
  ],
}

describe('spans for a collector', () => {
  test('[H8] as JSON have ids in hexadecimal and numbers of 64 bits as text', () => {
    const { resourceSpans } = JSON.parse(Buffer.from(spansAsJson(batch)).toString())
    expect(resourceSpans).toEqual([
      {
        resource: { attributes: [{ key: 'service.name', value: { stringValue: 'servo' } }] },
        scopeSpans: [
          {
            scope: { name: 'servo-flow' },
            spans: [
              {
                traceId: '0af7651916cd43dd8448eb211c80319c',
                spanId: 'b7ad6b7169203331',
                parentSpanId: '00f067aa0ba902b7',
                name: 'run',
                kind: 2,
                startTimeUnixNano: '1794990000123000000',
                endTimeUnixNano: '1794990000456000000',
                attributes: [
                  { key: 'text', value: { stringValue: 'ü' } },
                  { key: 'whole', value: { intValue: '-1' } },
                  { key: 'half', value: { doubleValue: 0.5 } },
                  { key: 'yes', value: { boolValue: true } },
                ],
                events: [{ name: 'started', timeUnixNano: '1794990000200000000' }],
                status: { code: 2, message: 'no luck' },
              },
            ],
          },
        ],
      },
    ])
  })

  // The bytes were decoded by opentelemetry-proto 1.38, which test/e2e/server/traces.test.ts asks again.
  test('[H8] as protobuf are these bytes', () => {
    expect(Buffer.from(spansAsProtobuf(batch)).toString('hex')).toMatchSnapshot()
  })
})
