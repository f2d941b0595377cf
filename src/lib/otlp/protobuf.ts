import { type Attributes, type AttributeValue, type SpanBatch, spanKinds, statusCodes, type TraceSpan } from './span.ts'

/**
 * A batch as OTLP in protobuf: `ExportTraceServiceRequest` of opentelemetry-proto 1.x. The numbers of fields are those of its messages, and
 * never change. Of all that protobuf has, this needs text, bytes, messages, whole numbers and 64 bits of fixed length.
 */
export function spansAsProtobuf({ resource, scope, spans }: SpanBatch): Uint8Array {
  const scopeSpans = [message(1, [text(1, scope)]), ...spans.map((span) => message(2, spanFields(span)))]
  const resourceSpans = [message(1, attributeFields(1, resource)), message(2, scopeSpans)]
  return Buffer.concat([message(1, resourceSpans)])
}

const spanFields = (span: TraceSpan): Uint8Array[] => [
  bytes(1, Buffer.from(span.traceId, 'hex')),
  bytes(2, Buffer.from(span.spanId, 'hex')),
  ...(span.parentSpanId === undefined ? [] : [bytes(4, Buffer.from(span.parentSpanId, 'hex'))]),
  text(5, span.name),
  wholeNumber(6, spanKinds[span.kind]),
  nanoseconds(7, span.startMs),
  nanoseconds(8, span.endMs),
  ...attributeFields(9, span.attributes),
  ...(span.events ?? []).map(({ name, atMs }) => message(11, [nanoseconds(1, atMs), text(2, name)])),
  message(15, [
    ...(span.message === undefined ? [] : [text(2, span.message)]),
    ...(span.outcome === 'unset' ? [] : [wholeNumber(3, statusCodes[span.outcome])]),
  ]),
]

const attributeFields = (field: number, attributes: Attributes): Uint8Array[] =>
  Object.entries(attributes).map(([key, value]) => message(field, [text(1, key), message(2, [valueField(value)])]))

function valueField(value: AttributeValue): Uint8Array {
  if (typeof value === 'string') return text(1, value)
  if (typeof value === 'boolean') return wholeNumber(2, value ? 1 : 0)
  if (Number.isSafeInteger(value)) return wholeNumber(3, value)
  const eightBytes = Buffer.alloc(8)
  eightBytes.writeDoubleLE(value)
  return Buffer.concat([varint(tag(4, FIXED64)), eightBytes])
}

const [VARINT, FIXED64, LENGTH_DELIMITED] = [0, 1, 2]
const tag = (field: number, type: number): bigint => BigInt(field * 8 + type)

function bytes(field: number, content: Uint8Array): Uint8Array {
  return Buffer.concat([varint(tag(field, LENGTH_DELIMITED)), varint(BigInt(content.length)), content])
}
const text = (field: number, content: string): Uint8Array => bytes(field, Buffer.from(content))
const message = (field: number, fields: readonly Uint8Array[]): Uint8Array => bytes(field, Buffer.concat(fields))
const wholeNumber = (field: number, value: number): Uint8Array =>
  Buffer.concat([varint(tag(field, VARINT)), varint(BigInt.asUintN(64, BigInt(value)))])

function nanoseconds(field: number, ms: number): Uint8Array {
  const eightBytes = Buffer.alloc(8)
  eightBytes.writeBigUInt64LE(BigInt(Math.max(0, Math.round(ms))) * 1_000_000n)
  return Buffer.concat([varint(tag(field, FIXED64)), eightBytes])
}

/** Seven bits in each byte, the lowest first; the eighth says that more follow. */
function varint(value: bigint): Uint8Array {
  const found: number[] = []
  for (let left = value; ; left >>= 7n) {
    if (left < 0x80n) return Buffer.from([...found, Number(left)])
    found.push(Number(left & 0x7fn) | 0x80)
  }
}
