import type { AttemptResultInput, DispatchEnvelope } from '../../../contract/dispatch.ts'
import type { LocalAttemptOptions, Workers } from './workers.ts'

/**
 * Holds attempts back until the project is loaded. A project that cannot be loaded when its server starts must not fail the runs
 * that were under way: they wait until it is repaired.
 */
export class HeldWorkers implements Workers {
  readonly #inner: Workers
  readonly #leads: () => Promise<boolean>
  readonly #held = new Map<string, (begin: boolean) => void>()
  #open = false

  constructor(inner: Workers, leads: () => Promise<boolean>) {
    this.#inner = inner
    this.#leads = leads
  }

  release(): void {
    this.#open = true
    for (const decide of [...this.#held.values()]) decide(true)
  }

  async run(envelope: DispatchEnvelope, options: LocalAttemptOptions): Promise<AttemptResultInput> {
    if (!this.#open) {
      const begins = await new Promise<boolean>((resolve) => this.#held.set(envelope.attempt_id, resolve))
      this.#held.delete(envelope.attempt_id)
      // The attempt was held for a while: this process may have been deposed since.
      if (!begins || !(await this.#leads())) return { outcome: 'CANCELLED' }
    }
    return await this.#inner.run(envelope, options)
  }

  cancel(attemptId: string, options: { graceMs: number; reason: string }): void {
    const held = this.#held.get(attemptId)
    if (held !== undefined) held(false)
    else this.#inner.cancel(attemptId, options)
  }
}
