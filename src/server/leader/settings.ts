import type { ProjectManifest } from '../../contract/project-manifest.ts'
import { MINUTE_MS, SECOND_MS } from '../../lib/time.ts'

/** The limits and timing of a project; everything it leaves out has a default. */
export type OrchestratorSettings = Partial<Pick<ProjectManifest, 'concurrency' | 'queues' | 'timing'>>

export interface LeaderTiming {
  /** The time between two sweeps, while anything is unfinished. */
  readonly sweepMs: number
  /** Long enough for a machine to start for the work. An attempt that is offered too often still begins only once. */
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
