import type { AttemptResultInput, DispatchEnvelope } from './dispatch.ts'
import type { ProjectManifestInput, ProjectProblem } from './project-manifest.ts'

/**
 * The messages between the orchestrator and a local worker process: one JSON object per line, both ways, over a socket pair
 * that the child finds at file descriptor 3. Standard output and standard error stay free for user code.
 */
export type ToWorker =
  /**
   * Attempts run one at a time, in the order of arrival. The process reports the end of one before it begins the next, so the
   * pool knows which was running when a process ends: the first that has no result.
   */
  | { readonly type: 'run'; readonly envelope: DispatchEnvelope }
  /** Requests the attempts that wait behind another. The reply, `returned`, names them: they have not begun and never will. */
  | { readonly type: 'take_back' }
  /** Asks the attempt to stop: its AbortSignal fires, or it never begins. If it does not stop, the parent kills the process. */
  | { readonly type: 'cancel'; readonly attempt_id: string; readonly reason: string }

export type FromWorker =
  | { readonly type: 'loaded'; readonly manifest: ProjectManifestInput }
  | { readonly type: 'load_failed'; readonly problems: readonly ProjectProblem[] }
  | { readonly type: 'log'; readonly attempt_id: string; readonly entries: readonly LogEntry[] }
  | { readonly type: 'completed'; readonly attempt_id: string; readonly took_ms: number; readonly result: AttemptResultInput }
  | { readonly type: 'returned'; readonly attempt_ids: readonly string[] }

export interface LogEntry {
  /** Milliseconds since 1970. */
  readonly at: number
  readonly stream: 'stdout' | 'stderr' | 'log'
  readonly level?: 'debug' | 'info' | 'warn' | 'error'
  readonly text: string
  readonly fields?: Readonly<Record<string, unknown>>
}
