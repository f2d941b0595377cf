import type { ProjectManifestInput, ProjectProblem } from './definition.ts'
import type { AttemptResultInput, DispatchEnvelope } from './dispatch.ts'

/**
 * What the orchestrator and a local worker process say to each other: one JSON object per line, both ways, over a socket pair
 * that the child finds at file descriptor 3. Standard output and standard error stay free for user code.
 */
export type ToWorker =
  | { readonly type: 'run'; readonly envelope: DispatchEnvelope }
  /** Asks the attempt to stop: its AbortSignal fires. Killing, if it does not listen, is the parent's business. */
  | { readonly type: 'cancel'; readonly attempt_id: string; readonly reason: string }

export type FromWorker =
  | { readonly type: 'loaded'; readonly manifest: ProjectManifestInput }
  | { readonly type: 'load_failed'; readonly problems: readonly ProjectProblem[] }
  | { readonly type: 'log'; readonly attempt_id: string; readonly entries: readonly LogEntry[] }
  | { readonly type: 'completed'; readonly attempt_id: string; readonly result: AttemptResultInput }

export interface LogEntry {
  /** Milliseconds since 1970. */
  readonly at: number
  readonly stream: 'stdout' | 'stderr' | 'log'
  readonly level?: 'debug' | 'info' | 'warn' | 'error'
  readonly text: string
  readonly fields?: Readonly<Record<string, unknown>>
}
