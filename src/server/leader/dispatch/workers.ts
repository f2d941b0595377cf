import type { AttemptResultInput, DispatchEnvelope } from '../../../contract/dispatch.ts'
import type { LogEntry } from '../../../contract/pipe.ts'

/** Runs attempts on this machine: the process pool, or a test's stand-in. */
export interface Workers {
  /** Runs one attempt. Never rejects: whatever happens to the worker is a result. */
  run(envelope: DispatchEnvelope, options: LocalAttemptOptions): Promise<AttemptResultInput>
  /** Requests that an attempt stop, and kills it if it has not stopped after the grace. */
  cancel(attemptId: string, options: { graceMs: number; reason: string }): void
}

export interface LocalAttemptOptions {
  readonly timeoutMs?: number
  /** Called when the attempt begins: a process has it, and nothing waits before it there. */
  readonly onStart: () => void
  readonly onLog: (entries: readonly LogEntry[]) => void
}
