import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { messageOf, ServoError } from '../../lib/error.ts'
import type { Attributes, SpanBatch, TraceSpan } from '../../lib/otlp/span.ts'
import { MINUTE_MS, SECOND_MS } from '../../lib/time.ts'
import type { AlarmClock } from '../../ports/clock.ts'
import type { TraceSettings } from './settings.ts'

export interface SpanExporterOptions {
  readonly settings: TraceSettings
  readonly clock: AlarmClock
  readonly resource: Attributes
  readonly scope: SpanBatch['scope']
  readonly encode: (batch: SpanBatch) => Uint8Array
  readonly onExported: (spans: number) => void
  readonly onDropped: (spans: number, reason: 'queue_full' | 'not_taken') => void
  /** Told once of a collector that takes nothing, until it takes something again. */
  readonly onTrouble: (error: unknown) => void
}

/** What a collector asks to be sent again, by the specification of OTLP. */
const AGAIN = new Set([429, 502, 503, 504])
const MAX_TRIES = 4
const MAX_PAUSE_MS = 30 * SECOND_MS
const compressed = promisify(gzip)

/**
 * Sends spans to a collector in batches, behind everything else. Memory is bounded: while the collector is slow or away, spans wait in a
 * queue, and those that find it full are dropped and counted. Nobody waits for it.
 */
export class SpanExporter {
  readonly #options: SpanExporterOptions
  readonly #waiting: TraceSpan[] = []
  #cancelAlarm: (() => void) | undefined
  #sending: Promise<void> | undefined
  #isInTrouble = false
  #isClosing = false

  constructor(options: SpanExporterOptions) {
    this.#options = options
  }

  add(span: TraceSpan): void {
    const { maxQueue, maxBatch, delayMs } = this.#options.settings
    if (this.#waiting.length >= maxQueue) {
      this.#options.onDropped(1, 'queue_full')
      return
    }
    this.#waiting.push(span)
    if (this.#waiting.length >= maxBatch) this.#send()
    else this.#cancelAlarm ??= this.#options.clock.after(delayMs, () => this.#send())
  }

  /** Sends what waits, as far as the grace allows. */
  async close(graceMs: number): Promise<void> {
    this.#isClosing = true
    this.#send()
    await Promise.race([this.#sending, this.#options.clock.sleep(graceMs)])
    this.#cancelAlarm?.()
    const left = this.#waiting.splice(0).length
    if (left > 0) this.#options.onDropped(left, 'not_taken')
  }

  #send(): void {
    this.#cancelAlarm?.()
    this.#cancelAlarm = undefined
    this.#sending ??= this.#sendAll().finally(() => {
      this.#sending = undefined
      // What came while the last batch was on its way.
      if (this.#waiting.length > 0 && !this.#isClosing)
        this.#cancelAlarm ??= this.#options.clock.after(this.#options.settings.delayMs, () => this.#send())
    })
  }

  async #sendAll(): Promise<void> {
    const { maxBatch } = this.#options.settings
    while (this.#waiting.length > 0) {
      const spans = this.#waiting.splice(0, maxBatch)
      const problem = await this.#deliver(spans)
      if (problem === undefined) this.#options.onExported(spans.length)
      else this.#options.onDropped(spans.length, 'not_taken')
      if (problem !== undefined && !this.#isInTrouble) this.#options.onTrouble(notTaken(this.#options.settings.url, problem))
      this.#isInTrouble = problem !== undefined
      if (this.#waiting.length < maxBatch && !this.#isClosing) return
    }
  }

  /** Returns why it was not taken, after trying again where that may help. */
  async #deliver(spans: readonly TraceSpan[]): Promise<string | undefined> {
    const { settings, clock, resource, scope, encode } = this.#options
    const plain = encode({ resource, scope, spans })
    const body = settings.gzip ? await compressed(plain) : plain
    for (let tries = 1; ; tries++) {
      const { problem, again, pauseMs } = await this.#post(body)
      if (problem === undefined || !again || tries === MAX_TRIES || this.#isClosing) return problem
      await clock.sleep(Math.min(MAX_PAUSE_MS, pauseMs ?? SECOND_MS * 2 ** (tries - 1)))
    }
  }

  async #post(body: Uint8Array): Promise<{ problem?: string; again?: boolean; pauseMs?: number | undefined }> {
    const { url, protocol, headers, gzip: isCompressed, timeoutMs } = this.#options.settings
    try {
      const response = await fetch(url, {
        method: 'POST',
        headers: {
          ...headers,
          'content-type': protocol === 'http/json' ? 'application/json' : 'application/x-protobuf',
          ...(isCompressed && { 'content-encoding': 'gzip' }),
        },
        body: new Uint8Array(body),
        // The headers may have a secret, which goes to the address that was configured and nowhere else.
        redirect: 'manual',
        signal: AbortSignal.timeout(timeoutMs),
      })
      await response.body?.cancel()
      if (response.ok) return {}
      const after = Number(response.headers.get('retry-after') ?? Number.NaN)
      return {
        problem: `it answered ${response.status}`,
        again: AGAIN.has(response.status),
        pauseMs: after >= 0 && after * SECOND_MS <= 10 * MINUTE_MS ? after * SECOND_MS : undefined,
      }
    } catch (error) {
      return { problem: reasonOf(error), again: true }
    }
  }
}

/** `fetch failed` says nothing; its cause does. */
const reasonOf = (error: unknown): string => messageOf(error instanceof Error && error.cause ? error.cause : error)

/** Only the origin of the address: the rest may be a secret. */
const notTaken = (url: string, problem: string): ServoError =>
  new ServoError('unavailable', 'spans_not_taken', `the trace collector at ${new URL(url).origin} takes no spans: ${problem}`, {
    hint: 'Runs are not affected. Check the collector, and the address in OTEL_EXPORTER_OTLP_ENDPOINT.',
  })
