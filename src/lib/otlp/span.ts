export type AttributeValue = string | number | boolean
export type Attributes = Readonly<Record<string, AttributeValue>>

/** The numbers of the protocol. */
export const spanKinds = { internal: 1, server: 2, client: 3, producer: 4, consumer: 5 } as const
export type SpanKind = keyof typeof spanKinds

/** Something that took time, as part of a trace. */
export interface TraceSpan {
  /** 32 hexadecimal digits. */
  readonly traceId: string
  /** 16 hexadecimal digits. */
  readonly spanId: string
  readonly parentSpanId?: string | undefined
  /** Few different ones: what differs is an attribute. */
  readonly name: string
  readonly kind: SpanKind
  readonly startMs: number
  readonly endMs: number
  readonly attributes: Attributes
  readonly events?: readonly { readonly name: string; readonly atMs: number }[]
  readonly outcome: 'ok' | 'error' | 'unset'
  /** Of an error. */
  readonly message?: string | undefined
}

/** Spans of one process, as an exporter sends them. */
export interface SpanBatch {
  readonly resource: Attributes
  /** Who made the spans: the name of a library. */
  readonly scope: string
  readonly spans: readonly TraceSpan[]
}

export const statusCodes = { unset: 0, ok: 1, error: 2 } as const satisfies Record<TraceSpan['outcome'], number>
