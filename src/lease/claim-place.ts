import type { Candidate, Leader } from '../ports/lease.ts'

/**
 * Where the claims of a lease stand, one for each number, each created once and never changed. `Standing` has what can be
 * known of another process, such as whether it lives. Everything but `create` is fast.
 */
export interface ClaimPlace {
  /** Creates the claim of this number unless there is one. It is durable, and whole as soon as others can see it. */
  create(number: number, candidate: Candidate): Promise<'written' | 'exists'>
  /** The claim with the highest number; undefined when there never was one. */
  newest(): Standing | undefined
  /** The highest number, 0 when there is none, and the open challenges to the holder of the claim `number`. */
  look(number: number): { newest: number; challenges: readonly string[] }
  /** True when this is no longer the place in which we created the claim of this number: moved, replaced or gone. Costs next to nothing. */
  moved(number: number): boolean
  /** Called by a holder that has lost its claim, and will not check again whether the place was moved. */
  leave(number: number): void
  /** Replaces the sign of the holder of a claim. */
  writeSign(number: number, sign: Sign): void
  /** The last sign of the holder of a claim; undefined if there is none, or the claim is gone. */
  readSign(number: number): Sign | undefined
  /** Requests a sign of life from the holder of a claim. The function it returns withdraws the challenge. */
  challenge(number: number): () => void
  /** Removes challenges that were answered. */
  answered(number: number, challenges: readonly string[]): void
  /** Removes one claim, and everything that belongs to it. */
  remove(number: number): void
  /** Removes every claim below this number. The newest claim is never removed, so no number is ever used twice. */
  removeBelow(number: number): void
  /**
   * Calls back when something may have changed; the function it returns ends that. Returns undefined if this place cannot be watched,
   * and calls `deaf` when it no longer can. The holder then looks at regular intervals.
   */
  watch(changed: () => void, deaf: () => void): (() => void) | undefined
}

/** The sign of life that a holder keeps beside its claim. */
export interface Sign {
  /** Counts the challenges that it answered. */
  readonly renewals: number
  readonly address: string | null
  readonly released: boolean
  /** What a holder keeps for the next. */
  readonly kept?: string | undefined
}

export const FIRST_SIGN: Sign = { renewals: 0, address: null, released: false }

/** The newest claim, and the state of its holder, as far as it is known without a challenge. */
export interface Standing {
  readonly number: number
  readonly leader: Leader
  readonly sign: Sign
  /** True when it has no holder: released, copied here from another folder, or its process is proven dead. */
  readonly isVacant: boolean
}
