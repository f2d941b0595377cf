import { parseCron } from './parse-cron.ts'
import { Ticks } from './ticks.ts'
import { zoneNamed } from './zone-clocks.ts'

/** When a schedule ticks: whenever any of its expressions does, from its start to its end. */
export interface CadenceDefinition {
  readonly cron_expressions: readonly string[]
  readonly timezone: string
  /** Milliseconds since 1970; null where it has no bound. A tick at a bound counts. */
  readonly start_at: number | null
  readonly end_at: number | null
}

/** Ticks are counted from here, so that a question about these years looks at no others. */
const COUNTED_FROM_MS = Date.UTC(2024, 0, 1)

/** The last few answers to a question. A full hour makes a thousand schedules ask the same, one after the other. */
class Answers {
  readonly #asked = new Float64Array(4).fill(Number.NaN)
  readonly #answers: (number | undefined)[] = []
  #oldest = 0

  get(ms: number, find: (ms: number) => number | undefined): number | undefined {
    const known = this.#asked.indexOf(ms)
    if (known >= 0) return this.#answers[known]
    const answer = find(ms)
    this.#asked[this.#oldest] = ms
    this.#answers[this.#oldest] = answer
    this.#oldest = (this.#oldest + 1) % this.#asked.length
    return answer
  }
}

/** The ticks of several expressions in one zone. Ticks of two expressions that meet are one tick. */
export class Cadence {
  readonly #ticks: readonly Ticks[]
  readonly #startMs: number
  readonly #endMs: number
  readonly #after = new Answers()
  readonly #until = new Answers()

  /** Throws when an expression or the zone cannot be read. */
  constructor({ cron_expressions, timezone, start_at, end_at }: CadenceDefinition) {
    const zone = zoneNamed(timezone)
    this.#ticks = cron_expressions.map((text) => new Ticks(zone, parseCron(text), undefined, COUNTED_FROM_MS))
    this.#startMs = start_at ?? Number.NEGATIVE_INFINITY
    this.#endMs = end_at ?? Number.POSITIVE_INFINITY
  }

  /** The first tick after an instant. */
  after(ms: number): number | undefined {
    return this.#after.get(ms, this.#findAfter)
  }

  readonly #findAfter = (ms: number): number | undefined => {
    const from = Math.max(Math.floor(ms) + 1, this.#startMs)
    let first: number | undefined
    for (const ticks of this.#ticks) {
      const next = ticks.next(from)
      if (next !== undefined && (first === undefined || next < first)) first = next
    }
    return first === undefined || first > this.#endMs ? undefined : first
  }

  /** The last tick at or before an instant. */
  until(ms: number): number | undefined {
    return this.#until.get(ms, this.#findUntil)
  }

  readonly #findUntil = (ms: number): number | undefined => {
    const to = Math.min(ms, this.#endMs)
    let last: number | undefined
    for (const ticks of this.#ticks) {
      const previous = ticks.previous(to)
      if (previous !== undefined && (last === undefined || previous > last)) last = previous
    }
    return last === undefined || last < this.#startMs ? undefined : last
  }

  has(ms: number): boolean {
    return this.after(ms - 1) === ms
  }

  /** How many ticks there are after one instant and not after another. */
  count(afterMs: number, untilMs: number): number {
    const after = Math.max(afterMs, this.#startMs - 1)
    const until = Math.min(untilMs, this.#endMs)
    if (until <= after) return 0
    const counts = this.#ticks.map((ticks) => ticks.rank(until + 1) - ticks.rank(after + 1))
    const [only = 0, ...others] = counts
    if (others.length === 0) return only
    // Where ticks meet cannot be counted, so those of all expressions but the densest are looked at one by one.
    const most = counts.indexOf(Math.max(...counts))
    let count = counts[most] ?? 0
    const seen = new Set<number>()
    for (const [index, ticks] of this.#ticks.entries()) {
      if (index === most) continue
      for (let tick = ticks.next(after + 1); tick !== undefined && tick <= until; tick = ticks.next(tick + 1)) {
        if (seen.has(tick) || this.#ticks[most]?.next(tick) === tick) continue
        seen.add(tick)
        count += 1
      }
    }
    return count
  }

  /** The newest ticks after one instant and not after another, at most so many, oldest first. */
  newest(most: number, afterMs: number, untilMs: number): number[] {
    const found: number[] = []
    for (let tick = this.until(untilMs); found.length < most; tick = this.until(tick - 1)) {
      if (tick === undefined || tick <= afterMs) break
      found.push(tick)
    }
    return found.reverse()
  }
}

const KEPT = 10_000
const cadences = new Map<string, Cadence>()

/** The cadence of a definition. Many questions are asked about each, so that what was counted is kept. */
export function cadenceOf(definition: CadenceDefinition): Cadence {
  const { cron_expressions, timezone, start_at, end_at } = definition
  const name = JSON.stringify([cron_expressions, timezone, start_at, end_at])
  const known = cadences.get(name)
  if (known !== undefined) return known
  const cadence = new Cadence(definition)
  const [oldest] = cadences.keys()
  if (oldest !== undefined && cadences.size >= KEPT) cadences.delete(oldest)
  cadences.set(name, cadence)
  return cadence
}
