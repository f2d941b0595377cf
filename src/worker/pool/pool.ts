import type { AttemptResult, DispatchEnvelope } from '../../contract/dispatch.ts'
import { cancelledResult, failedResult } from '../attempt-results.ts'
import { type JobOptions, ProcessPool, type ProcessPoolOptions } from './process-pool.ts'
import { reportedResult } from './reported-result.ts'
import type { WorkEnd } from './work.ts'

export type { Loaded, LoadFailed, WorkerCommand } from './process-pool.ts'
export type WorkerPoolOptions = Omit<ProcessPoolOptions, 'sharing'>

/** Runs attempts in processes of their own. */
export class WorkerPool extends ProcessPool<AttemptResult> {
  constructor(options: WorkerPoolOptions) {
    super(options, resultOf)
  }

  /** Runs an attempt as soon as a process is free. Never rejects: whatever happens to the process is a result. */
  run(envelope: DispatchEnvelope, options: JobOptions = {}): Promise<AttemptResult> {
    return this.do({ id: envelope.attempt_id, name: envelope.asset_key, message: { type: 'run', envelope } }, options)
  }
}

function resultOf(end: WorkEnd): AttemptResult {
  if (end.kind === 'reported') return reportedResult(end.result)
  if (end.kind === 'cancelled') return cancelledResult()
  return failedResult(end.category, end.message, { stack: end.kind === 'failed' ? end.stack : undefined })
}
