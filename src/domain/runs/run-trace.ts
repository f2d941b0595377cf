import { sha256 } from '../../lib/hash.ts'
import { parseTraceparent, type TraceContext } from '../../lib/traceparent.ts'
import type { RunRow } from './runs.table.ts'
import { evaluationOf, type SourceRef } from './trigger.ts'

/** The trace that a run belongs to. All ids are derived, so that every process gives the same and none has to be remembered. */
export interface RunTrace {
  readonly traceId: string
  /** The span of whoever asked from outside: a client, or the sender of a message. */
  readonly caller: TraceContext | undefined
  /** The span of the tick, the evaluation or the request that made the run. */
  readonly triggerSpan: string
}

type TracedRun = Readonly<Pick<RunRow, 'run_id' | 'traceparent' | 'trigger_source_ref'>>

/** The trace of what has this id, unless a caller brings a trace along. An evaluation and all runs it asks for are one trace. */
export function traceOf(triggerId: string, traceparent: string | null | undefined): RunTrace {
  const caller = traceparent == null ? undefined : parseTraceparent(traceparent)
  const traceId = caller?.traceId ?? sha256(`trace:${triggerId}`).slice(0, 32)
  return { traceId, caller, triggerSpan: spanOf(`trigger:${triggerId}`) }
}

export const traceOfRun = (run: TracedRun): RunTrace =>
  traceOf(triggerOf(run.trigger_source_ref) ?? run.run_id, run.traceparent)

/** The tick or the evaluation that asked for a run; undefined if the request of the run is all there is. */
const triggerOf = (source: SourceRef): string | undefined =>
  source.type === 'schedule' ? source.tick_id : evaluationOf(source)?.eval_id

/** The id of a span, made of the id of what it shows. */
export const spanOf = (id: string): string => sha256(`span:${id}`).slice(0, 16)

/** What an attempt passes on: its own span, in the trace of its run. */
export const traceOfAttempt = (trace: RunTrace, attemptId: string, sampled: boolean): TraceContext => ({
  traceId: trace.traceId,
  spanId: spanOf(attemptId),
  sampled,
})
