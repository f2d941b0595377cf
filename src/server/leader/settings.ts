import type { ProjectManifest } from '../../contract/project-manifest.ts'
import { MINUTE_MS, SECOND_MS } from '../../lib/time.ts'

/** What a project says of limits and patience; what it leaves out has a default. */
export type OrchestratorSettings = Partial<Pick<ProjectManifest, 'concurrency' | 'queues' | 'timing'>>

export interface LeaderTiming {
  /** How often every row is looked at again, while there is anything unfinished. */
  readonly sweepMs: number
  /** Long enough for a machine to be started for the work; an attempt that is offered too often is still begun only once. */
  readonly stuckDispatchMs: number
  /** How long a cancelled attempt may take to end by itself. */
  readonly cancelGraceMs: number
}

export function timingOf({ timing = {} }: OrchestratorSettings): LeaderTiming {
  return {
    sweepMs: timing.sweep_ms ?? 5 * MINUTE_MS,
    stuckDispatchMs: timing.stuck_dispatch_ms ?? 10 * MINUTE_MS,
    cancelGraceMs: timing.cancel_grace_ms ?? 10 * SECOND_MS,
  }
}
