import { type Attributes, type AttributeValue, type SpanBatch, spanKinds, statusCodes, type TraceSpan } from './span.ts'

/** A batch as OTLP/JSON: ids in hexadecimal, 64-bit numbers as text, enumerations as numbers. */
export function spansAsJson({ resource, scope, spans }: SpanBatch): Uint8Array {
  const scopeSpans = [{ scope: { name: scope }, spans: spans.map(spanOf) }]
  return Buffer.from(JSON.stringify({ resourceSpans: [{ resource: { attributes: attributesOf(resource) }, scopeSpans }] }))
}

function spanOf(span: TraceSpan): object {
  const { traceId, spanId, parentSpanId, name, kind, startMs, endMs, attributes, events = [], outcome, message } = span
  return {
    traceId,
    spanId,
    ...(parentSpanId !== undefined && { parentSpanId }),
    name,
    kind: spanKinds[kind],
    startTimeUnixNano: nanoseconds(startMs),
    endTimeUnixNano: nanoseconds(endMs),
    attributes: attributesOf(attributes),
    ...(events.length > 0 && { events: events.map(({ name, atMs }) => ({ name, timeUnixNano: nanoseconds(atMs) })) }),
    status: { code: statusCodes[outcome], ...(message !== undefined && { message }) },
  }
}

const attributesOf = (attributes: Attributes): object[] =>
  Object.entries(attributes).map(([key, value]) => ({ key, value: anyValue(value) }))

function anyValue(value: AttributeValue): object {
  if (typeof value === 'string') return { stringValue: value }
  if (typeof value === 'boolean') return { boolValue: value }
  return Number.isSafeInteger(value) ? { intValue: String(value) } : { doubleValue: value }
}

/** A number of JavaScript would lose the last digits. */
const nanoseconds = (ms: number): string => `${Math.max(0, Math.round(ms))}000000`
