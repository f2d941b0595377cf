import type { AlarmClock } from './clock.ts'
import type { HeldLease } from './lease.ts'
import { type ClaimPlace, FIRST_SIGN, type Sign } from './lease-claims.ts'
import { PauseDetector } from './pause.ts'

/**
 * A lease in the hands of its holder.
 *
 *     held ⇄ doubtful     after a pause, or when no sign could be given; until the place has been looked at
 *     either → lost       a higher claim is there, or ours is gone
 *     either → released
 *
 * An idle holder waits for the place to call, and asks only whether it is still there. Where that cannot call, it looks three times
 * in a period.
 */
export class HeldClaim implements HeldLease {
  readonly held = true
  readonly epoch: number
  readonly #place: ClaimPlace
  readonly #pauses: PauseDetector
  readonly #answered = new Set<string>()
  #state: 'held' | 'doubtful' | 'lost' | 'released' = 'doubtful'
  #sign: Sign = FIRST_SIGN
  #unwatch: (() => void) | undefined
  #onLost: (() => void)[] = []

  private constructor(place: ClaimPlace, epoch: number, { clock, periodMs }: { clock: AlarmClock; periodMs: number }) {
    this.#place = place
    this.epoch = epoch
    const onTick = (): void => this.#tick()
    // Half a period without a tick: whoever challenged us at the last one has half a period left to wait.
    this.#pauses = new PauseDetector(clock, { limitMs: periodMs / 2, everyMs: periodMs / 3, onTick })
  }

  /** For whoever has created the claim of this epoch; undefined when there is a higher one. */
  static begin(place: ClaimPlace, epoch: number, options: { clock: AlarmClock; periodMs: number }): HeldClaim | undefined {
    const claim = new HeldClaim(place, epoch, options)
    try {
      const deaf = (): void => {
        claim.#unwatch = undefined
      }
      // Before the first look, so that no challenge and no claim falls between the two.
      claim.#unwatch = place.watch(() => claim.#lookAgain(), deaf)
      claim.#look()
    } catch (error) {
      claim.#end('lost')
      throw error
    }
    return claim.#state === 'held' ? claim : undefined
  }

  get isHeld(): boolean {
    return this.#state === 'held' && !this.#pauses.wasPaused
  }

  async confirm(): Promise<boolean> {
    if (!this.#isOver) this.#look()
    return this.#state === 'held'
  }

  async announce(address: string): Promise<void> {
    if (!this.#isOver) this.#say({ ...this.#sign, address })
  }

  onLost(call: () => void): void {
    if (this.#state === 'lost') call()
    else this.#onLost.push(call)
  }

  async release(): Promise<void> {
    if (this.#isOver) return
    // First, so that nothing is done any more by the time that anybody can claim it.
    this.#end('released')
    try {
      this.#say({ ...this.#sign, released: true })
    } catch {
      // Whoever claims it next finds out that its process is gone, or waits for a sign in vain.
    }
  }

  get #isOver(): boolean {
    return this.#state === 'lost' || this.#state === 'released'
  }

  #tick(): void {
    // Nobody calls when the place as a whole is moved away, or another put where it was.
    if (this.#unwatch === undefined || !this.isHeld || this.#place.moved(this.epoch)) this.#lookAgain()
  }

  /** A place that cannot be looked at is not known to be ours; whoever asks by `confirm` is told why. */
  #lookAgain(): void {
    try {
      if (!this.#isOver) this.#look()
    } catch {
      if (!this.#isOver) this.#state = 'doubtful'
    }
  }

  #look(): void {
    this.#state = 'doubtful'
    for (;;) {
      const { newest, challenges } = this.#place.look(this.epoch)
      if (newest !== this.epoch || this.#place.moved(this.epoch)) {
        this.#lose()
        return
      }
      const open = challenges.filter((challenge) => !this.#answered.has(challenge))
      if (open.length === 0) break
      this.#say({ ...this.#sign, renewals: this.#sign.renewals + 1 })
      for (const challenge of open) this.#answered.add(challenge)
      this.#place.answered(this.epoch, open)
      // And look again. Only who has given a sign and then finds no higher claim still leads: a challenger whose claim came
      // between the two finds the sign, and waits.
    }
    this.#pauses.forgive()
    this.#state = 'held'
  }

  #say(sign: Sign): void {
    this.#place.say(this.epoch, sign)
    this.#sign = sign
  }

  #lose(): void {
    this.#end('lost')
    for (const call of this.#onLost.splice(0)) call()
  }

  #end(state: 'lost' | 'released'): void {
    this.#state = state
    this.#pauses.stop()
    this.#unwatch?.()
    this.#unwatch = undefined
    this.#place.leave(this.epoch)
  }
}
