import type { AlertRule } from '../../../domain/alerts/alert-rule.ts'
import { AssetFreshnessNoticed } from '../../../domain/alerts/asset-freshness-noticed.event.ts'
import { staleAssets } from '../../../domain/alerts/stale-assets.table.ts'
import type { AssetGraph } from '../../../domain/assets/graph.ts'
import { MINUTE_MS, toIso } from '../../../lib/time.ts'
import { type NewEvent, newEvent } from '../../../model/event.ts'
import type { Rows } from '../../../model/rows.ts'
import type { AlarmClock } from '../../../ports/clock.ts'

export interface StaleWatchOptions {
  readonly clock: AlarmClock
  readonly rows: () => Rows
  readonly rules: () => readonly AlertRule[]
  readonly graph: () => AssetGraph
  /** How many partitions of each of these assets are older than its freshness policy allows. */
  readonly overdue: (assets: readonly string[]) => Promise<ReadonlyMap<string, number>>
  readonly submit: (events: readonly NewEvent[]) => Promise<unknown>
  readonly onTrouble: (error: unknown) => void
}

/** Soon enough for a policy of hours, and seldom enough to cost nothing. */
const EVERY_MS = 5 * MINUTE_MS

/** Looks every few minutes whether assets with a freshness policy are overdue, if an alert wants to know. What changed is recorded. */
export class StaleWatch {
  readonly #options: StaleWatchOptions
  #cancel: (() => void) | undefined
  #isStopped = false

  constructor(options: StaleWatchOptions) {
    this.#options = options
  }

  projectKnown(): void {
    this.#cancel?.()
    // Nobody wants to know, so that an idle process stays idle.
    if (this.#isStopped || !this.#options.rules().some(({ on }) => on.has('asset.stale'))) return
    // A start has more urgent things to do.
    this.#cancel = this.#options.clock.after(MINUTE_MS, () => void this.#look())
  }

  stop(): void {
    this.#isStopped = true
    this.#cancel?.()
  }

  async #look(): Promise<void> {
    const { clock, submit, onTrouble } = this.#options
    try {
      const events = await this.#changes()
      if (events.length > 0 && !this.#isStopped) await submit(events)
    } catch (error) {
      if (!this.#isStopped) onTrouble(error)
    }
    if (!this.#isStopped) this.#cancel = clock.after(EVERY_MS, () => void this.#look())
  }

  async #changes(): Promise<NewEvent[]> {
    const { clock, rows, rules, graph, overdue } = this.#options
    const wanted = rules().filter(({ on }) => on.has('asset.stale'))
    if (wanted.length === 0) return []
    const assets = [...graph().assets.values()]
      .filter(
        ({ policies, asset_key }) =>
          policies['freshness'] != null && wanted.some((rule) => rule.assets?.has(asset_key) ?? true),
      )
      .map(({ asset_key }) => asset_key)
    const now = clock.now()
    const found = assets.length === 0 ? new Map<string, number>() : await overdue(assets)
    const as_of = toIso(now)
    const known = rows().hot(staleAssets)
    return assets.flatMap((asset_key) => {
      const partitions = found.get(asset_key) ?? 0
      const row = known.get(asset_key)
      if (partitions > 0 === (row?.stale ?? false)) return []
      const stale_since = partitions > 0 ? as_of : toIso(row?.stale_since ?? now)
      return [newEvent(AssetFreshnessNoticed, { asset_key, as_of, stale: partitions > 0, stale_since, partitions })]
    })
  }
}
