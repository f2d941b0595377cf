import type { AttemptResultInput, DispatchEnvelope } from './dispatch.ts'
import type { EvaluationReport, EvaluationRequest } from './evaluation.ts'
import type { ProjectManifestInput, ProjectProblem } from './project-manifest.ts'

/**
 * The messages between the orchestrator and a local worker process: one JSON object per line, both ways, over a socket pair
 * that the child finds at file descriptor 3. Standard output and standard error stay free for user code.
 */
export type ToWorker =
  /**
   * Attempts and evaluations run one at a time, in the order of arrival. The process reports the end of one before it begins the
   * next, so the pool knows which was running when a process ends: the first that has no result.
   */
  | { readonly type: 'run'; readonly envelope: DispatchEnvelope }
  | { readonly type: 'evaluate'; readonly request: EvaluationRequest }
  /** Requests the work that waits behind other work. The reply, `returned`, names it: it has not begun and never will. */
  | { readonly type: 'take_back' }
  /** Asks the work to stop: its AbortSignal fires, or it never begins. If it does not stop, the parent kills the process. */
  | { readonly type: 'cancel'; readonly id: string; readonly reason: string }

export type FromWorker =
  | {
      readonly type: 'loaded'
      readonly manifest: ProjectManifestInput
      /** Names of environment variables whose values no output may show. */
      readonly secret_variables?: readonly string[]
    }
  | { readonly type: 'load_failed'; readonly problems: readonly ProjectProblem[] }
  /** A module takes long to load: whoever waits may want to know which. */
  | { readonly type: 'still_loading'; readonly file: string }
  /** Of an attempt. What an evaluation prints stays in its process; the end of it is part of an error. */
  | { readonly type: 'log'; readonly id: string; readonly entries: readonly LogEntry[] }
  /** The id is that of an attempt or of an evaluation. */
  | {
      readonly type: 'completed'
      readonly id: string
      readonly took_ms: number
      readonly result: AttemptResultInput | EvaluationReport
    }
  | { readonly type: 'returned'; readonly ids: readonly string[] }

export interface LogEntry {
  /** Milliseconds since 1970. */
  readonly at: number
  readonly stream: 'stdout' | 'stderr' | 'log'
  readonly level?: 'debug' | 'info' | 'warn' | 'error'
  readonly text: string
  readonly fields?: Readonly<Record<string, unknown>>
}
