import type { AlarmClock } from './clock.ts'
import { HeldClaim } from './held-claim.ts'
import type { Candidate, Leader, Lease } from './lease.ts'

/**
 * Where the claims of a lease stand, one for each epoch, each created once and never changed. What a place cannot know of
 * another process, such as whether it lives, `Standing` says. Everything but `create` takes no time worth waiting for.
 */
export interface ClaimPlace {
  /** Creates the claim of this epoch unless there is one. It is durable, and whole as soon as anybody can see it. */
  create(epoch: number, candidate: Candidate): Promise<'written' | 'exists'>
  /** The claim with the highest epoch; undefined when nobody ever claimed. */
  newest(): Standing | undefined
  /** The highest epoch, 0 when there is none, and the challenges to the holder of `epoch` that are open. */
  look(epoch: number): { newest: number; challenges: readonly string[] }
  /** True when this is no longer the place in which we created the claim of this epoch: moved, replaced or gone. Costs next to nothing. */
  moved(epoch: number): boolean
  /** For a holder that is none any more, and will not ask again whether the place was moved. */
  leave(epoch: number): void
  /** What the holder of an epoch says of itself; replaced as a whole. */
  say(epoch: number, sign: Sign): void
  /** What the holder of an epoch last said; undefined when it said nothing, or its claim is gone. */
  heard(epoch: number): Sign | undefined
  /** Asks the holder of an epoch for a sign of life, until what it returns is called. */
  challenge(epoch: number): () => void
  /** Removes challenges that were answered. */
  answered(epoch: number, challenges: readonly string[]): void
  /** Removes one claim, and all that belongs to it. */
  remove(epoch: number): void
  /** Removes every claim below this epoch. The newest claim is never removed, so no number is ever used twice. */
  removeBelow(epoch: number): void
  /**
   * Calls when something may have changed, until what it returns is called. Returns undefined when this place cannot tell; calls
   * `deaf` when it no longer can. The holder then looks at regular intervals.
   */
  watch(changed: () => void, deaf: () => void): (() => void) | undefined
}

/** What a holder says of itself beside its claim. */
export interface Sign {
  /** One more for every challenge it answered. */
  readonly renewals: number
  readonly address: string | null
  readonly released: boolean
}

export const FIRST_SIGN: Sign = { renewals: 0, address: null, released: false }

/** The newest claim, and what can be told of its holder without asking it. */
export interface Standing {
  readonly epoch: number
  readonly leader: Leader
  readonly sign: Sign
  /** True when nobody holds it: released, copied here from another folder, or its process is proven dead. */
  readonly isVacant: boolean
}

export interface LeaseOptions {
  readonly clock: AlarmClock
  /** How long a holder may leave a challenge unanswered before it is replaced. */
  readonly periodMs?: number
}

/**
 * Longer than a process is blocked by garbage collection, a slow disk or a machine under load; short enough to wait for. Only a
 * holder that is neither proven dead nor answering makes anybody wait.
 */
const PERIOD_MS = 10_000

/** The first look for an answer comes after this long, the later ones at most a twentieth of the period apart. */
const FIRST_LOOK_MS = 4

/**
 * A lease made of numbered claims, for any place in which a name can be created only once. Creating the claim of epoch n + 1 is
 * the compare-and-swap that takes the lease from the holder of epoch n.
 */
export function claimedLease(place: ClaimPlace, { clock, periodMs = PERIOD_MS }: LeaseOptions): Lease {
  return {
    async claim(candidate) {
      // Every further turn means that somebody else got on: claimed, released, or answered and then died.
      for (;;) {
        const before = place.newest()
        const isHeld = before !== undefined && !before.isVacant
        const withdraw = isHeld ? place.challenge(before.epoch) : undefined
        try {
          const now = isHeld ? await waitForSign(before) : before
          if (now?.epoch !== before?.epoch) continue
          if (isHeld && now?.isVacant === false && isAnswer(before, now.sign)) return { held: false, leader: now.leader }
          const held = await take((now?.epoch ?? 0) + 1, candidate, now)
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
  }

  /** Waits for a sign of life, for at most a period, and returns how things stand then. */
  async function waitForSign(before: Standing): Promise<Standing | undefined> {
    const since = clock.monotonic()
    for (let waitMs = FIRST_LOOK_MS; ; waitMs = Math.min(waitMs * 2, periodMs / 20)) {
      const left = since + periodMs - clock.monotonic()
      await clock.sleep(Math.min(waitMs, Math.max(0, left)))
      const now = place.newest()
      // Time is asked before looking: whoever gave a sign before the period was over is heard, however late this process looks.
      if (left <= 0 || now?.epoch !== before.epoch || now.isVacant || isAnswer(before, now.sign)) return now
    }
  }

  /** Creates a claim; undefined when somebody else was quicker. */
  async function take(epoch: number, candidate: Candidate, previous: Standing | undefined): Promise<HeldClaim | undefined> {
    if ((await place.create(epoch, candidate)) === 'exists') return undefined
    const held = HeldClaim.begin(place, epoch, { clock, periodMs })
    if (held === undefined) {
      // Whoever was away for long has created the number of a claim that was removed. There is a higher one, so ours is void.
      place.remove(epoch)
      return undefined
    }
    // The silent holder gave a sign at the last moment, and may have looked before our claim was there. It finds the claim when it
    // looks next, and mistrusts itself if it has not run for half a period; so after half a period it has stopped.
    if (previous?.isVacant === false && isAnswer(previous, place.heard(previous.epoch))) await clock.sleep(periodMs / 2)
    place.removeBelow(epoch)
    return held
  }
}

function isAnswer(before: Standing, sign: Sign | undefined): boolean {
  return sign !== undefined && sign.renewals !== before.sign.renewals
}
