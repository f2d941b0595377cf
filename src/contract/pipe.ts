import type { AttemptResultInput, DispatchEnvelope } from './dispatch.ts'
import type { ProjectManifestInput, ProjectProblem } from './project-manifest.ts'

/**
 * What the orchestrator and a local worker process say to each other: one JSON object per line, both ways, over a socket pair
 * that the child finds at file descriptor 3. Standard output and standard error stay free for user code.
 */
export type ToWorker =
  /**
   * Attempts run one at a time, in the order in which they came. The end of one is told before the next begins, so the
   * pool knows which was running when a process ends: the first that has no result.
   */
  | { readonly type: 'run'; readonly envelope: DispatchEnvelope }
  /** Asks for the attempts that wait behind another. The answer, `returned`, names them: they have not begun and never will. */
  | { readonly type: 'take_back' }
  /** Asks the attempt to stop: its AbortSignal fires, or it never begins. Killing, if it does not listen, is the parent's business. */
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
