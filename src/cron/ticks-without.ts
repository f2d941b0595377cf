import { countWhile } from '../lib/collections/binary-search.ts'
import type { Ticks } from './ticks.ts'

/** Ticks that can be counted. */
export type CountedTicks = Pick<Ticks, 'next' | 'rank' | 'at'>

/** Ticks of which single ones are left out, such as holidays: as cheap to count as all of them. */
export class TicksWithout implements CountedTicks {
  private readonly ticks: CountedTicks
  /** In order, as are their ranks among all. */
  private readonly left: readonly number[]
  private readonly ranks: readonly number[]

  constructor(ticks: CountedTicks, left: Iterable<number>) {
    this.ticks = ticks
    this.left = [...new Set(left)].filter((ms) => ticks.next(ms) === ms).sort((a, b) => a - b)
    this.ranks = this.left.map((ms) => ticks.rank(ms))
  }

  next(ms: number): number | undefined {
    let tick = this.ticks.next(ms)
    for (let i = this.before(tick ?? 0); tick !== undefined && tick === this.left[i]; i++) tick = this.ticks.next(tick + 1)
    return tick
  }

  rank(ms: number): number {
    return this.ticks.rank(ms) - this.before(ms)
  }

  at(rank: number): number | undefined {
    // Each tick that is left out shifts all later ones by one.
    const passed = countWhile(this.ranks.length, (i) => (this.ranks[i] ?? 0) - i <= rank)
    return this.ticks.at(rank + passed)
  }

  /** How many that are left out come before an instant. */
  private before(ms: number): number {
    return countWhile(this.left.length, (i) => (this.left[i] ?? 0) < ms)
  }
}
