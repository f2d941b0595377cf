const FORM = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/

/** What a `traceparent` of W3C trace context says. */
export interface TraceContext {
  readonly traceId: string
  readonly spanId: string
  readonly sampled: boolean
}

/**
 * Reads a `traceparent`. Version `ff` and ids of zeros are invalid. We do not keep the fields that a later version may append, so such a
 * text is refused whole.
 */
export function parseTraceparent(text: string): TraceContext | undefined {
  const [, version, traceId = '', spanId = '', flags = ''] = FORM.exec(text) ?? []
  if (version === undefined || version === 'ff' || isZero(traceId) || isZero(spanId)) return undefined
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 }
}

export const isTraceparent = (text: string): boolean => parseTraceparent(text) !== undefined

export const writeTraceparent = ({ traceId, spanId, sampled }: TraceContext): string =>
  `00-${traceId}-${spanId}-${sampled ? '01' : '00'}`

const isZero = (id: string): boolean => /^0*$/.test(id)

/** The trace of a client, if it is valid. By the standard an invalid one is ignored, and the request still counts. */
export const traceparentOf = (text: string | null | undefined): string | undefined =>
  text != null && isTraceparent(text) ? text : undefined
