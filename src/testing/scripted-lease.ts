import type { HeldLease } from '../ports/lease.ts'

/** A lease that is held until the test takes it away. */
export class ScriptedLease implements HeldLease {
  readonly held = true
  readonly wasMoved = false
  readonly number: number
  address: string | undefined
  kept: string | undefined
  #isHeld = true
  #onLost: (() => void) | undefined

  constructor(number = 1) {
    this.number = number
  }

  get isHeld(): boolean {
    return this.#isHeld
  }

  /** Another process leads. The holder is notified, unless it was only paused and must find out by itself. */
  lose({ notifies = true } = {}): void {
    this.#isHeld = false
    if (notifies) this.#onLost?.()
  }

  async confirm(): Promise<boolean> {
    return this.#isHeld
  }

  async announce(address: string): Promise<void> {
    this.address = address
  }

  async keep(text: string): Promise<void> {
    this.kept = text
  }

  onLost(call: () => void): void {
    this.#onLost = call
  }

  async release(): Promise<void> {
    this.#isHeld = false
  }
}
