import type { AlarmClock } from '../../ports/clock.ts'
import type { Candidate, Lease } from '../../ports/lease.ts'
import { type ClaimPlace, claimedLease, FIRST_SIGN, type LeaseOptions, type Sign } from '../../ports/lease-claims.ts'

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

  /** The claims as one of several processes sees them; its clock is when it hears of anything. */
  seenBy(clock: AlarmClock): ClaimPlace {
    const changed = (): void => {
      for (const watcher of this.#watchers) watcher()
    }
    return {
      create: async (epoch, candidate) => {
        if (this.#claims.has(epoch)) return 'exists'
        this.#claims.set(epoch, { candidate, challenges: new Set(), sign: FIRST_SIGN })
        changed()
        return 'written'
      },
      newest: () => {
        const epoch = this.#newest
        const claim = this.#claims.get(epoch)
        if (claim === undefined) return undefined
        const { candidate, sign } = claim
        const { name, term } = candidate
        const leader = { epoch, name, term, address: sign.address, pid: process.pid, host: 'memory' }
        return { epoch, leader, sign, isVacant: sign.released }
      },
      look: (epoch) => ({ newest: this.#newest, challenges: [...(this.#claims.get(epoch)?.challenges ?? [])] }),
      moved: () => false,
      leave: () => undefined,
      say: (epoch, sign) => {
        const claim = this.#claims.get(epoch)
        if (claim !== undefined) claim.sign = sign
        changed()
      },
      heard: (epoch) => this.#claims.get(epoch)?.sign,
      challenge: (epoch) => {
        const challenge = String(++this.#challenges)
        this.#claims.get(epoch)?.challenges.add(challenge)
        changed()
        return () => this.#claims.get(epoch)?.challenges.delete(challenge)
      },
      answered: (epoch, challenges) => {
        for (const challenge of challenges) this.#claims.get(epoch)?.challenges.delete(challenge)
      },
      remove: (epoch) => void this.#claims.delete(epoch),
      removeBelow: (epoch) => {
        for (const each of this.#claims.keys()) if (each < epoch) this.#claims.delete(each)
      },
      watch: (call) => {
        const hear = (): void => void clock.after(0, call)
        this.#watchers.add(hear)
        return () => this.#watchers.delete(hear)
      },
    }
  }

  get #newest(): number {
    return Math.max(0, ...this.#claims.keys())
  }
}

/** A lease between whoever is given the same claims in this process. No holder can be proven dead: a silent one is waited for. */
export function memoryLease(options: LeaseOptions, claims = new MemoryClaims()): Lease {
  return claimedLease(claims.seenBy(options.clock), options)
}
