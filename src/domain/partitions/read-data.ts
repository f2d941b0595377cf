import type { Span } from '../../partitions/spans.ts'
import { isIn, type Run, type SameData } from './same-data.ts'
import type { StaleAsset, UpstreamLink } from './stale-asset.ts'
import type { StaleLink } from './stale-links.ts'
import type { StatusColumns } from './status-columns.ts'

/** What it takes to be sure, by the keys of assets. */
export interface WantedFacts {
  /** Assets of which the versions matter. */
  readonly versions: readonly string[]
  /** Assets of which it matters when their partitions were made. */
  readonly made: readonly string[]
}

export interface LearnedFacts {
  readonly versions: ReadonlyMap<string, SameData>
  readonly made: ReadonlyMap<string, StatusColumns>
}

/** When all partitions of some spans had what they have now. */
interface KnownRuns {
  readonly spans: readonly Span[]
  readonly since: number
  /** Including the stretches before; only worked out if there are any. */
  runs?: readonly Run[]
}

/**
 * Says whether something newer is also something else: data that was made again with the version that was read changes nothing. Most
 * questions need no versions, so they are loaded when something newer is found. Until then it counts as something else.
 */
export class ReadData {
  readonly #versions = new Map<string, SameData>()
  readonly #made = new Map<string, StatusColumns>()
  readonly #wanted = { versions: new Set<string>(), made: new Set<string>() }
  /** Caches the last spans of each link: a million partitions may be made from the same hundred thousand. */
  readonly #runs = new Map<StaleLink, KnownRuns>()

  /** Undefined when nothing is wanted. */
  get wanted(): WantedFacts | undefined {
    const { versions, made } = this.#wanted
    return versions.size + made.size === 0 ? undefined : { versions: [...versions], made: [...made] }
  }

  /** The versions that answers depend on. */
  get versions(): ReadonlyMap<string, SameData> {
    return this.#versions
  }

  learn({ versions, made }: LearnedFacts): void {
    for (const [key, same] of versions) {
      this.#versions.set(key, same)
      this.#wanted.versions.delete(key)
    }
    for (const [key, columns] of made) {
      this.#made.set(key, columns)
      this.#wanted.made.delete(key)
    }
    this.#runs.clear()
  }

  /** Since when an upstream partition has the data that it has now, by the clock of that time. */
  since({ key, columns }: StaleAsset, position: number): number {
    return this.#versions.get(key)?.shownSince(position) ?? columns.shownAt(position)
  }

  /** Of one upstream partition that is newer than what was made from it. */
  isOther(asset: StaleAsset, position: number, above: StaleAsset, at: number): boolean {
    if (above.isAlwaysNew || !above.columns.isVersioned(at)) return true
    const same = this.#same(above)
    if (same === undefined) return true
    const read = asset.columns.inputsAt(position)
    if (same.since(at) <= read) return false
    return !same.hasEarlier || !same.covers(at, read, this.#madeAt(asset, position))
  }

  /** Of many, one of which is newer. */
  areOther(asset: StaleAsset, position: number, link: UpstreamLink, spans: readonly Span[]): boolean {
    const { above } = link
    if (above.isAlwaysNew || !above.columns.hasVersions) return true
    const same = this.#same(above)
    if (same === undefined) return true
    const read = asset.columns.inputsAt(position)
    const known = this.#runsOf(link, spans, same)
    if (known.since <= read) return false
    if (!same.hasEarlier) return true
    known.runs ??= same.runsOf(spans)
    return !isIn(known.runs, read, this.#madeAt(asset, position))
  }

  #same({ key }: StaleAsset): SameData | undefined {
    const same = this.#versions.get(key)
    if (same === undefined) this.#wanted.versions.add(key)
    return same
  }

  /** Its inputs may have been read until then. */
  #madeAt({ key, columns }: StaleAsset, position: number): number {
    const dated = columns.times.made ? columns : this.#made.get(key)
    if (dated === undefined) this.#wanted.made.add(key)
    return dated?.madeAt(position) ?? Number.POSITIVE_INFINITY
  }

  #runsOf(link: StaleLink, spans: readonly Span[], same: SameData): KnownRuns {
    let known = this.#runs.get(link)
    if (known?.spans !== spans) {
      known = { spans, since: spans.reduce((since, span) => Math.max(since, same.sinceOf(span)), 0) }
      this.#runs.set(link, known)
    }
    return known
  }
}
