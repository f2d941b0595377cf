import { utcDay } from '../../lib/time.ts'
import { ulidTime } from '../../lib/ulid.ts'
import type { Manifest } from '../manifest/manifest.ts'
import { daysOf, daysToClose, foldersOfDays, includesDay, pathsOfDay, withDays } from './days.ts'
import type { LedgerPlace } from './read-segment.ts'

/**
 * The days of the ledger that the leader knows, and how they go from open to closed to settled. Once a manifest that closes a day is
 * durable, the leader lists the day for the last time. A process that writes to the day after that finds the manifest before it
 * acknowledges, and writes its segment elsewhere.
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

  /** A segment of this name exists, or is about to be written. */
  add(ulid: string): void {
    this.#known.add(utcDay(ulidTime(ulid)))
  }

  /** This manifest is durable: what it closes is closed from now on. */
  note({ closed_days = [] }: Manifest): void {
    this.#closed = new Set(daysOf(closed_days))
  }

  /** Days that can be listed for the last time. */
  get due(): string[] {
    return [...this.#closed]
  }

  /** The manifest with these days settled, and with those closed that can be closed now. */
  move(manifest: Manifest, settling: readonly string[], nowMs: number): Manifest {
    const { closed_days = [], settled_days = [] } = manifest
    // The same array while nothing changes, so that a change is cheap to see.
    const settled = settling.length === 0 ? settled_days : withDays(settled_days, settling)
    const waiting = [...daysOf(closed_days)].filter((day) => !includesDay(settled, day))
    const closed = withDays([], [...waiting, ...daysToClose(manifest, this.#known, nowMs)])
    for (const day of this.#known) if (includesDay(settled, day)) this.#known.delete(day)
    return { ...manifest, closed_days: closed, settled_days: settled }
  }
}

/**
 * Closed days of which everything is folded: lists each of them once more, and folds what it finds. A day with a segment that cannot
 * be read waits until the segment is repaired.
 */
export async function daysToSettle(
  { store, paths }: LedgerPlace,
  closed: readonly string[],
  foldAll: (found: readonly string[]) => Promise<boolean>,
): Promise<string[]> {
  if (closed.length === 0) return []
  const folders = new Set(await foldersOfDays(store, paths))
  const settled: string[] = []
  for (const day of closed) {
    const found = folders.has(day) ? await pathsOfDay(store, paths, day) : []
    if (await foldAll(found)) settled.push(day)
  }
  return settled
}
