import { MINUTE_MS, utcDay } from '../lib/time.ts'
import { ulidTime } from '../lib/ulid.ts'
import type { AlarmClock } from '../ports/clock.ts'
import { daysOf, daysToClose, includesDay, withDays } from './ledger-days.ts'
import type { Manifest } from './manifest.ts'

/**
 * From when a day is closed to when it is looked at for the last time. A writer knows within a minute that it is closed, and one
 * whose write takes longer than half a minute looks again.
 */
const SETTLE_AFTER_MS = 2 * MINUTE_MS

/** Which days of the ledger the leader knows, and how they go from open to closed to settled. */
export class DayClosing {
  readonly #clock: Pick<AlarmClock, 'monotonic'>
  /** Days of which the ledger has a folder, and that are not settled. */
  readonly #known: Set<string>
  /** Since when a day is known here to be closed, by the clock that never jumps. */
  readonly #closedSince = new Map<string, number>()

  constructor(clock: Pick<AlarmClock, 'monotonic'>, days: readonly string[]) {
    this.#clock = clock
    this.#known = new Set(days)
  }

  get known(): string[] {
    return [...this.#known]
  }

  /** There is a segment of this name, or will be. */
  add(ulid: string): void {
    this.#known.add(utcDay(ulidTime(ulid)))
  }

  /** This manifest is durable: what it closes is closed from now on. */
  note({ closed_days = [] }: Manifest): void {
    const now = this.#clock.monotonic()
    for (const day of daysOf(closed_days)) if (!this.#closedSince.has(day)) this.#closedSince.set(day, now)
  }

  /** Days that have been closed for so long that nobody writes to them any more. */
  due({ closed_days = [] }: Manifest): string[] {
    const now = this.#clock.monotonic()
    return [...daysOf(closed_days)].filter((day) => now - (this.#closedSince.get(day) ?? now) >= SETTLE_AFTER_MS)
  }

  /** The manifest with these days settled, and with those closed that can be closed now. */
  move(manifest: Manifest, settling: readonly string[], nowMs: number): Manifest {
    const { closed_days = [], settled_days = [] } = manifest
    // The same value while nothing changes, so that it is cheap to see.
    const settled = settling.length === 0 ? settled_days : withDays(settled_days, settling)
    const waiting = [...daysOf(closed_days)].filter((day) => !includesDay(settled, day))
    const closed = withDays([], [...waiting, ...daysToClose(manifest, this.#known, nowMs)])
    for (const day of this.#known) if (includesDay(settled, day)) this.#known.delete(day)
    return { ...manifest, closed_days: closed, settled_days: settled }
  }
}
