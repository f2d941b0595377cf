import { type Transitions, transition } from '../lib/transitions.ts'
import type { AlarmClock } from '../ports/clock.ts'
import type { HeldLease } from '../ports/lease.ts'
import { type ClaimPlace, FIRST_SIGN, type Sign } from './claim-place.ts'
import { PauseDetector } from './pause-detector.ts'

type ClaimState = 'held' | 'doubtful' | 'lost' | 'released'

/** Where each state may lead. */
const transitions: Transitions<ClaimState> = {
  doubtful: ['doubtful', 'held', 'lost', 'released'],
  held: ['doubtful', 'lost', 'released'],
  lost: [],
  released: [],
}

/**
 * A lease in the hands of its holder.
 *
 *     doubtful ⇄ held     from the beginning, after a pause, or when no sign could be given; until the holder has looked at the place
 *     either → lost       a higher claim is there, or ours is gone
 *     either → released
 *
 * An idle holder waits for the place to call, and checks only that the place is still there. A place that cannot call is looked at
 * three times in a period.
 */
export class HeldClaim implements HeldLease {
  readonly held = true
  readonly number: number
  readonly #place: ClaimPlace
  readonly #pauses: PauseDetector
  readonly #answered = new Set<string>()
  #state: ClaimState = 'doubtful'
  #sign: Sign = FIRST_SIGN
  #unwatch: (() => void) | undefined
  #onLost: (() => void)[] = []
  #wasMoved = false

  private constructor(place: ClaimPlace, number: number, { clock, periodMs }: { clock: AlarmClock; periodMs: number }) {
    this.#place = place
    this.number = number
    const onTick = (): void => this.#tick()
    // Half a period without a tick: a process that challenged us at the last one has half a period left to wait.
    this.#pauses = new PauseDetector(clock, { limitMs: periodMs / 2, everyMs: periodMs / 3, onTick })
  }

  /** Holds a claim that this process has created; undefined when there is a higher one. */
  static begin(
    place: ClaimPlace,
    number: number,
    { kept, ...options }: { clock: AlarmClock; periodMs: number; kept?: string | undefined },
  ): HeldClaim | undefined {
    const claim = new HeldClaim(place, number, options)
    try {
      const deaf = (): void => {
        claim.#unwatch = undefined
      }
      // Before the first look, so that no challenge and no claim falls between the two.
      claim.#unwatch = place.watch(() => claim.#lookAgain(), deaf)
      claim.#look()
      // Before the earlier claim is removed, and what was kept with it.
      if (kept !== undefined && claim.#state === 'held') claim.#sendSign({ ...claim.#sign, kept })
    } catch (error) {
      claim.#end('lost')
      throw error
    }
    return claim.#state === 'held' ? claim : undefined
  }

  get isHeld(): boolean {
    return this.#state === 'held' && !this.#pauses.wasPaused
  }

  get wasMoved(): boolean {
    return this.#state === 'lost' && this.#wasMoved
  }

  async confirm(): Promise<boolean> {
    if (!this.#isOver) this.#look()
    return this.#state === 'held'
  }

  async announce(address: string): Promise<void> {
    if (!this.#isOver) this.#sendSign({ ...this.#sign, address })
  }

  get kept(): string | undefined {
    return this.#sign.kept
  }

  async keep(text: string): Promise<void> {
    if (!this.#isOver) this.#sendSign({ ...this.#sign, kept: text })
  }

  onLost(call: () => void): void {
    if (this.#state === 'lost') call()
    else this.#onLost.push(call)
  }

  async release(): Promise<void> {
    if (this.#isOver) return
    // First, so that this process does nothing any more by the time that another can claim the lease.
    this.#end('released')
    try {
      this.#sendSign({ ...this.#sign, released: true })
    } catch {
      // The next candidate finds out that this process is gone, or waits for a sign in vain.
    }
  }

  get #isOver(): boolean {
    return this.#state === 'lost' || this.#state === 'released'
  }

  #tick(): void {
    // A watch does not report that its folder was moved or replaced.
    if (this.#unwatch === undefined || !this.isHeld || this.#place.moved(this.number)) this.#lookAgain()
  }

  /** A place that cannot be looked at is not known to be ours; a caller of `confirm` gets the error. */
  #lookAgain(): void {
    try {
      if (!this.#isOver) this.#look()
    } catch {
      if (!this.#isOver) this.#enter('doubtful')
    }
  }

  #look(): void {
    this.#enter('doubtful')
    for (;;) {
      const { newest, challenges } = this.#place.look(this.number)
      // Only a higher claim removes one: a claim that is gone without it was deleted, file by file, with everything around it.
      this.#wasMoved = newest < this.number || this.#place.moved(this.number)
      if (newest !== this.number || this.#wasMoved) {
        this.#lose()
        return
      }
      const open = challenges.filter((challenge) => !this.#answered.has(challenge))
      if (open.length === 0) break
      this.#sendSign({ ...this.#sign, renewals: this.#sign.renewals + 1 })
      for (const challenge of open) this.#answered.add(challenge)
      this.#place.answered(this.number, open)
      // And look again. Only a holder that has given a sign and then finds no higher claim still leads: a challenger whose claim
      // came between the two finds the sign, and waits.
    }
    this.#pauses.forgive()
    this.#enter('held')
  }

  #sendSign(sign: Sign): void {
    this.#place.writeSign(this.number, sign)
    this.#sign = sign
  }

  #lose(): void {
    this.#end('lost')
    for (const call of this.#onLost.splice(0)) call()
  }

  #enter(next: ClaimState): void {
    this.#state = transition('a claim', transitions, this.#state, next)
  }

  #end(state: 'lost' | 'released'): void {
    this.#enter(state)
    this.#pauses.stop()
    this.#unwatch?.()
    this.#unwatch = undefined
    this.#place.leave(this.number)
  }
}
