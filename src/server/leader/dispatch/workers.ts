import type { AttemptResultInput, DispatchEnvelope } from '../../../contract/dispatch.ts'
import type { LogEntry } from '../../../contract/pipe.ts'

/** What runs attempts on this machine: the pool of worker processes, or what a test has in its place. */
export interface Workers {
  /** Runs one attempt. Never rejects: whatever happens to the worker is a result. */
  run(envelope: DispatchEnvelope, options: LocalAttemptOptions): Promise<AttemptResultInput>
  /** Asks an attempt to stop, and ends it when it has not after the grace. */
  cancel(attemptId: string, options: { graceMs: number; reason: string }): void
}

export interface LocalAttemptOptions {
  readonly timeoutMs?: number
  /** It begins: a process has it, and nothing runs before it there. */
  readonly onStart: () => void
  readonly onLog: (entries: readonly LogEntry[]) => void
}
