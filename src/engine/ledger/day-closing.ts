import { utcDay } from '../../lib/time.ts'
import { ulidTime } from '../../lib/ulid.ts'
import type { Manifest } from '../manifest/manifest.ts'
import { daysOf, daysToClose, includesDay, withDays } from './days.ts'

/**
 * Which days of the ledger the leader knows, and how they go from open to closed to settled. Once a manifest that closes a day is
 * durable, the day is looked at for the last time: a process that writes to it later looks for such a manifest before it acknowledges.
 */
export class DayClosing {
  /** Days of which the ledger has a folder, and that are not settled. */
  readonly #known: Set<string>
  /** Days that are closed durably. */
  #closed = new Set<string>()

  constructor(days: readonly string[]) {
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
    this.#closed = new Set(daysOf(closed_days))
  }

  /** Days that can be looked at for the last time. */
  get due(): string[] {
    return [...this.#closed]
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
