import { TaskHeartbeat } from '../../../domain/tasks/task-heartbeat.event.ts'
import { SECOND_MS, toIso } from '../../../lib/time.ts'
import { type EventContext, type NewEvent, newEvent } from '../../../model/event.ts'
import type { AlarmClock } from '../../../ports/clock.ts'
import type { AttemptRef } from '../logs.ts'

export interface HeartbeatsOptions {
  readonly clock: AlarmClock
  readonly submit: (events: readonly NewEvent[]) => Promise<unknown>
}

interface HeardOf {
  readonly timeoutMs: number
  /** The last sign of life on record. */
  readonly writtenAt: number
  /** Where the fact belongs, if it is written. */
  readonly context: EventContext
}

interface Heard {
  at: number
  writtenAt: number
}

/** A heartbeat that is due for writing waits this long for others, which share the write. */
const TOGETHER_MS = SECOND_MS
/** Heartbeats are written this often within the timeout, so that readers of the tables see a living attempt as alive. */
const WRITES_PER_TIMEOUT = 3

/** Stores the time of the last heartbeat of each attempt: in memory, and now and then on record. */
export class Heartbeats {
  readonly #options: HeartbeatsOptions
  /** Listening began at this time; silence before it means nothing. */
  readonly #since: number
  readonly #lastSigns = new Map<string, Heard>()
  #due: NewEvent[] = []

  constructor(options: HeartbeatsOptions) {
    this.#options = options
    this.#since = options.clock.now()
  }

  heard(ref: AttemptRef, { timeoutMs, writtenAt, context }: HeardOf): void {
    const now = this.#options.clock.now()
    const known = this.#lastSigns.get(ref.attempt_id) ?? { at: now, writtenAt }
    this.#lastSigns.set(ref.attempt_id, known)
    known.at = now
    if (now - known.writtenAt < timeoutMs / WRITES_PER_TIMEOUT) return
    known.writtenAt = now
    const { run_id, task_key, attempt, attempt_id } = ref
    const beat = { run_id, task_key, attempt, attempt_id, heartbeat_at: toIso(now) }
    this.#due.push(newEvent(TaskHeartbeat, beat, context))
    if (this.#due.length === 1) this.#options.clock.after(TOGETHER_MS, () => this.#write())
  }

  /** When this process last received a heartbeat of this attempt, or began to listen. */
  lastSign(attemptId: string): number {
    return this.#lastSigns.get(attemptId)?.at ?? this.#since
  }

  forget(attemptId: string): void {
    this.#lastSigns.delete(attemptId)
  }

  #write(): void {
    const due = this.#due
    this.#due = []
    // A heartbeat that cannot be written does no harm: memory has it, and the next one is due soon.
    this.#options.submit(due).catch(() => undefined)
  }
}
