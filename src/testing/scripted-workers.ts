import type { AttemptResultInput, DispatchEnvelope } from '../contract/dispatch.ts'
import type { AlarmClock } from '../ports/clock.ts'
import type { LocalAttemptOptions, Workers } from '../server/leader/dispatch/workers.ts'

export interface Scripted {
  /** How long the attempt takes. */
  readonly ms?: number
  readonly result?: AttemptResultInput
  /** Goes on when it is asked to stop, until it is killed. */
  readonly deaf?: boolean
}

interface ScriptedAttempt {
  readonly envelope: DispatchEnvelope
  readonly onStart: () => void
  readonly end: (result: AttemptResultInput) => void
  deaf: boolean
}

/** Workers that follow a script, on the clock of the test, and record the attempts they began, in order. */
export class ScriptedWorkers implements Workers {
  readonly started: DispatchEnvelope[] = []
  /** As many as ever ran at once. */
  most = 0
  readonly #clock: AlarmClock
  readonly #script: (envelope: DispatchEnvelope) => Scripted
  readonly #size: number
  readonly #waiting = new Map<string, ScriptedAttempt>()
  readonly #active = new Map<string, ScriptedAttempt>()

  constructor(clock: AlarmClock, script: (envelope: DispatchEnvelope) => Scripted = () => ({}), size = 8) {
    this.#clock = clock
    this.#script = script
    this.#size = size
  }

  run(envelope: DispatchEnvelope, { onStart }: LocalAttemptOptions): Promise<AttemptResultInput> {
    return new Promise((resolve) => {
      const end = (result: AttemptResultInput): void => {
        this.#waiting.delete(envelope.attempt_id)
        this.#active.delete(envelope.attempt_id)
        resolve(result)
        this.#begin()
      }
      this.#waiting.set(envelope.attempt_id, { envelope, onStart, end, deaf: false })
      this.#begin()
    })
  }

  cancel(attemptId: string, { graceMs }: { graceMs: number }): void {
    this.#waiting.get(attemptId)?.end({ outcome: 'CANCELLED' })
    const attempt = this.#active.get(attemptId)
    if (attempt === undefined) return
    this.#clock.after(attempt.deaf ? graceMs : 1, () => attempt.end({ outcome: 'CANCELLED' }))
  }

  #begin(): void {
    for (const [id, attempt] of this.#waiting) {
      if (this.#active.size >= this.#size) return
      this.#waiting.delete(id)
      this.#active.set(id, attempt)
      this.most = Math.max(this.most, this.#active.size)
      this.started.push(attempt.envelope)
      attempt.onStart()
      const { ms = 0, deaf = false, result } = this.#script(attempt.envelope)
      attempt.deaf = deaf
      this.#clock.after(ms, () => attempt.end(result ?? { outcome: 'SUCCEEDED', materialization_id: `mat_${id}` }))
    }
  }
}
