import type { RunTrace } from '../../domain/runs/run-trace.ts'
import { spansAsJson } from '../../lib/otlp/json.ts'
import { spansAsProtobuf } from '../../lib/otlp/protobuf.ts'
import { SECOND_MS } from '../../lib/time.ts'
import type { Rows } from '../../model/rows.ts'
import type { AlarmClock } from '../../ports/clock.ts'
import type { ServerMetrics } from '../metrics/server-metrics.ts'
import { RecordedSpans } from './recorded-spans.ts'
import type { TraceSettings } from './settings.ts'
import { SpanExporter } from './span-exporter.ts'

export interface TracesOptions {
  readonly settings: TraceSettings
  readonly clock: AlarmClock
  readonly rows: () => Rows
  readonly metrics: Pick<ServerMetrics, 'spansExported' | 'spansDropped'>
  readonly instance: string
  readonly onTrouble: (error: unknown) => void
}

/** Longer than a collector that works takes for what is left. */
const CLOSE_GRACE_MS = 2 * SECOND_MS

/** Shows what is recorded to a collector of traces. */
export interface Traces {
  readonly recorded: RecordedSpans
  readonly isSampled: (trace: RunTrace) => boolean
  close(): Promise<void>
}

export function openTraces({ settings, clock, rows, metrics, instance, onTrouble }: TracesOptions): Traces {
  const exporter = new SpanExporter({
    settings,
    clock,
    resource: { 'service.instance.id': instance, ...settings.resource },
    scope: 'servo-flow',
    encode: settings.protocol === 'http/json' ? spansAsJson : spansAsProtobuf,
    onExported: (spans) => metrics.spansExported(spans),
    onDropped: (spans, reason) => metrics.spansDropped(spans, reason),
    onTrouble,
  })
  const isSampled = ({ traceId, caller }: RunTrace): boolean => settings.isSampled(traceId, caller?.sampled)
  return {
    recorded: new RecordedSpans({ rows, now: () => clock.now(), isSampled, add: (span) => exporter.add(span) }),
    isSampled,
    close: () => exporter.close(CLOSE_GRACE_MS),
  }
}
