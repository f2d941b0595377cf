import { type ClaimPlace, FIRST_SIGN, type Sign } from '../../lease/claim-place.ts'
import { claimedLease, type LeaseOptions } from '../../lease/claimed-lease.ts'
import type { AlarmClock } from '../../ports/clock.ts'
import type { Candidate, Lease } from '../../ports/lease.ts'

interface StoredClaim {
  readonly candidate: Candidate
  readonly challenges: Set<string>
  sign: Sign
}

/** Claims that live as long as the value. All who claim the same lease are given the same. */
export class MemoryClaims {
  readonly #claims = new Map<number, StoredClaim>()
  readonly #watchers = new Set<() => void>()
  #challenges = 0

  /** The claims as one of several processes sees them; its clock decides when it notices changes. */
  seenBy(clock: AlarmClock): ClaimPlace {
    const changed = (): void => {
      for (const watcher of this.#watchers) watcher()
    }
    return {
      create: async (number, candidate) => {
        if (this.#claims.has(number)) return 'exists'
        this.#claims.set(number, { candidate, challenges: new Set(), sign: FIRST_SIGN })
        changed()
        return 'written'
      },
      newest: () => {
        const number = this.#newest
        const claim = this.#claims.get(number)
        if (claim === undefined) return undefined
        const { candidate, sign } = claim
        const { name, term } = candidate
        const leader = { number, name, term, address: sign.address, pid: process.pid, host: 'memory' }
        return { number, leader, sign, isVacant: sign.released }
      },
      look: (number) => ({ newest: this.#newest, challenges: [...(this.#claims.get(number)?.challenges ?? [])] }),
      moved: () => false,
      leave: () => undefined,
      writeSign: (number, sign) => {
        const claim = this.#claims.get(number)
        if (claim !== undefined) claim.sign = sign
        changed()
      },
      readSign: (number) => this.#claims.get(number)?.sign,
      challenge: (number) => {
        const challenge = String(++this.#challenges)
        this.#claims.get(number)?.challenges.add(challenge)
        changed()
        return () => this.#claims.get(number)?.challenges.delete(challenge)
      },
      answered: (number, challenges) => {
        for (const challenge of challenges) this.#claims.get(number)?.challenges.delete(challenge)
      },
      remove: (number) => void this.#claims.delete(number),
      removeBelow: (number) => {
        for (const each of this.#claims.keys()) if (each < number) this.#claims.delete(each)
      },
      watch: (call) => {
        const notify = (): void => void clock.after(0, call)
        this.#watchers.add(notify)
        return () => this.#watchers.delete(notify)
      },
    }
  }

  get #newest(): number {
    return Math.max(0, ...this.#claims.keys())
  }
}

/** A lease between parts of this process that share the same claims. No holder can be proven dead: a silent one is waited for. */
export function memoryLease(options: LeaseOptions, claims = new MemoryClaims()): Lease {
  return claimedLease(claims.seenBy(options.clock), options)
}
