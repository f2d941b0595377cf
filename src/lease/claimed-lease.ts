import type { AlarmClock } from '../ports/clock.ts'
import type { Candidate, Lease } from '../ports/lease.ts'
import type { ClaimPlace, Sign, Standing } from './claim-place.ts'
import { HeldClaim } from './held-claim.ts'

export interface LeaseOptions {
  readonly clock: AlarmClock
  /** How long a holder may leave a challenge unanswered before it is replaced. */
  readonly periodMs?: number
}

/**
 * Longer than a process is blocked by garbage collection, a slow disk or a machine under load; short enough to wait for. Only a
 * holder that is neither proven dead nor answering makes a candidate wait.
 */
const PERIOD_MS = 10_000

/** The first look for an answer comes after this long, the later ones at most a twentieth of the period apart. */
const FIRST_LOOK_MS = 4

/**
 * A lease made of numbered claims, for any place in which a name can be created only once. Creating claim n + 1 is the
 * compare-and-swap that takes the lease from the holder of claim n.
 */
export function claimedLease(place: ClaimPlace, { clock, periodMs = PERIOD_MS }: LeaseOptions): Lease {
  return {
    async claim(candidate) {
      // Every further turn means that another process made progress: it claimed, released, or answered and then died.
      for (;;) {
        const before = place.newest()
        const isHeld = before !== undefined && !before.isVacant
        const withdraw = isHeld ? place.challenge(before.number) : undefined
        try {
          const now = isHeld ? await waitForSign(before) : before
          if (now?.number !== before?.number) continue
          if (isHeld && now?.isVacant === false && isAnswer(before, now.sign)) return { held: false, leader: now.leader }
          const held = await take((now?.number ?? 0) + 1, candidate, now)
          if (held !== undefined) return held
        } finally {
          // Not before our claim is there: a holder that wakes up and finds neither claim nor challenge would not give a sign.
          withdraw?.()
        }
      }
    },

    async leader() {
      const newest = place.newest()
      return newest?.isVacant === false ? newest.leader : undefined
    },

    async kept() {
      return place.newest()?.sign.kept
    },
  }

  /** Waits for a sign of life, for at most a period, and returns how things stand then. */
  async function waitForSign(before: Standing): Promise<Standing | undefined> {
    const since = clock.monotonic()
    for (let waitMs = FIRST_LOOK_MS; ; waitMs = Math.min(waitMs * 2, periodMs / 20)) {
      const left = since + periodMs - clock.monotonic()
      await clock.sleep(Math.min(waitMs, Math.max(0, left)))
      const now = place.newest()
      // The clock is read before the place: a sign given before the period was over counts, however late this process looks.
      if (left <= 0 || now?.number !== before.number || now.isVacant || isAnswer(before, now.sign)) return now
    }
  }

  /** Creates a claim; undefined when another candidate was quicker. */
  async function take(number: number, candidate: Candidate, previous: Standing | undefined): Promise<HeldClaim | undefined> {
    if ((await place.create(number, candidate)) === 'exists') return undefined
    const held = HeldClaim.begin(place, number, { clock, periodMs, kept: previous?.sign.kept })
    if (held === undefined) {
      // A candidate that was away for long has reused the number of a removed claim. There is a higher one, so ours is void.
      place.remove(number)
      return undefined
    }
    // The silent holder gave a sign at the last moment, and may have looked before our claim was there. It finds the claim when it
    // looks next, and mistrusts itself if it has not run for half a period; so after half a period it has stopped.
    if (previous?.isVacant === false && isAnswer(previous, place.readSign(previous.number))) await clock.sleep(periodMs / 2)
    place.removeBelow(number)
    return held
  }
}

function isAnswer(before: Standing, sign: Sign | undefined): boolean {
  return sign !== undefined && sign.renewals !== before.sign.renewals
}
