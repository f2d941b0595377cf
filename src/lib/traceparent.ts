const FORM = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}$/

/**
 * Whether this is a `traceparent` of W3C trace context. Version `ff` and ids of zeros are not; what a later version may append is
 * not kept by us, so neither is the whole of it.
 */
export function isTraceparent(text: string): boolean {
  const [, version, trace, span] = FORM.exec(text) ?? []
  return version !== undefined && version !== 'ff' && !isZero(trace) && !isZero(span)
}

const isZero = (id: string | undefined): boolean => /^0*$/.test(id ?? '')

/** What a client sent, if it is one. The standard wants another to be passed over: a broken trace is no broken request. */
export const traceparentOf = (text: string | null | undefined): string | undefined =>
  text != null && isTraceparent(text) ? text : undefined
