const FORM = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}$/

/**
 * True for a `traceparent` of W3C trace context. Version `ff` and ids of zeros are invalid. We do not keep the fields that a later version
 * may append, so such a text is refused whole.
 */
export function isTraceparent(text: string): boolean {
  const [, version, trace, span] = FORM.exec(text) ?? []
  return version !== undefined && version !== 'ff' && !isZero(trace) && !isZero(span)
}

const isZero = (id: string | undefined): boolean => /^0*$/.test(id ?? '')

/** The trace of a client, if it is valid. By the standard an invalid one is ignored, and the request still counts. */
export const traceparentOf = (text: string | null | undefined): string | undefined =>
  text != null && isTraceparent(text) ? text : undefined
