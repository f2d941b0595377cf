import type { ErrorCategory } from '../../contract/dispatch.ts'
import type { ToWorker } from '../../contract/pipe.ts'

/** Something for a worker process to do: an attempt at a task, or an evaluation. */
export interface Work {
  readonly id: string
  /** Work of the same name takes about the same time. */
  readonly name: string
  readonly message: Extract<ToWorker, { type: 'run' | 'evaluate' }>
}

/** How work ended, whatever kind it is of. */
export type WorkEnd =
  /** Its process reported a result, which is not checked yet: user code can write to the pipe too. */
  | { readonly kind: 'reported'; readonly result: unknown }
  | { readonly kind: 'failed'; readonly category: ErrorCategory; readonly message: string; readonly stack?: string }
  /** No process could begin it: none can load the project, or none can be started. */
  | { readonly kind: 'not_begun'; readonly category: ErrorCategory; readonly message: string }
  | { readonly kind: 'cancelled' }

export const CANCELLED: WorkEnd = { kind: 'cancelled' }
