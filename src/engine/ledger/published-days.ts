import type { Clock } from '../../ports/clock.ts'
import type { ObjectStore } from '../../ports/object-store.ts'
import { genesis } from '../manifest/manifest.ts'
import { newestManifest } from '../manifest/stored-manifests.ts'
import { Paths, type Scope } from '../paths.ts'
import { openDayFrom } from './days.ts'
import type { WritableDays } from './segment-writer.ts'

/** Which days of the ledger are open according to the newest manifest, for writers that do not lead (see `Ledger`). */
export class PublishedDays implements WritableDays {
  readonly #options: { readonly store: ObjectStore; readonly scope: Scope; readonly clock: Clock }
  readonly #paths: Paths
  #manifest
  #readAt: number | undefined

  constructor(options: { readonly store: ObjectStore; readonly scope: Scope; readonly clock: Clock }) {
    this.#options = options
    this.#paths = new Paths(options.scope)
    this.#manifest = genesis(options.scope)
  }

  openFrom(day: string): string {
    return openDayFrom(this.#manifest, day)
  }

  async learn(maxAgeMs: number): Promise<void> {
    const { store, scope, clock } = this.#options
    const now = clock.now()
    const age = now - (this.#readAt ?? Number.NEGATIVE_INFINITY)
    if (age >= 0 && age < maxAgeMs) return
    const newest = await newestManifest(store, this.#paths, scope, this.#manifest.number)
    if (newest.number > this.#manifest.number) this.#manifest = newest
    this.#readAt = now
  }
}
