import type { AttemptResultInput, DispatchEnvelope } from '../contract/dispatch.ts'
import type { AlarmClock } from '../ports/clock.ts'
import type { RunOptions, Workers } from '../server/workers.ts'

export interface Scripted {
  /** How long the attempt takes. */
  readonly ms?: number
  readonly result?: AttemptResultInput
  /** Goes on when it is asked to stop, until it is killed. */
  readonly deaf?: boolean
}

/** Workers that do what a script says, on the clock of the test, and remember what they were asked. */
export class ScriptedWorkers implements Workers {
  readonly started: DispatchEnvelope[] = []
  readonly #clock: AlarmClock
  readonly #script: (envelope: DispatchEnvelope) => Scripted
  readonly #active = new Map<string, { deaf: boolean; end: (result: AttemptResultInput) => void }>()
  /** As many as ever ran at once. */
  most = 0

  constructor(clock: AlarmClock, script: (envelope: DispatchEnvelope) => Scripted = () => ({})) {
    this.#clock = clock
    this.#script = script
  }

  get active(): number {
    return this.#active.size
  }

  run(envelope: DispatchEnvelope, { onStart }: RunOptions): Promise<AttemptResultInput> {
    this.started.push(envelope)
    onStart()
    const { ms = 0, deaf = false, result } = this.#script(envelope)
    return new Promise((resolve) => {
      const end = (ended: AttemptResultInput): void => {
        this.#active.delete(envelope.attempt_id)
        resolve(ended)
      }
      this.#active.set(envelope.attempt_id, { deaf, end })
      this.most = Math.max(this.most, this.#active.size)
      const succeeded = { outcome: 'SUCCEEDED', materialization_id: `mat_${envelope.attempt_id}` } as const
      this.#clock.after(ms, () => end(result ?? succeeded))
    })
  }

  cancel(attemptId: string, { graceMs }: { graceMs: number }): void {
    const attempt = this.#active.get(attemptId)
    if (attempt === undefined) return
    this.#clock.after(attempt.deaf ? graceMs : 1, () => attempt.end({ outcome: 'CANCELLED' }))
  }
}
