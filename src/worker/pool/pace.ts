/** The weight of the newest attempt in the average. */
const WEIGHT = 0.1

/** Before anything is known, attempts are taken to be long: most are. */
const UNKNOWN_MS = 10

/** How long attempts have taken of late. */
export class Pace {
  readonly #byAsset = new Map<string, number>()
  #ofAllMs = UNKNOWN_MS

  ended(assetKey: string, ms: number): void {
    this.#ofAllMs += WEIGHT * (ms - this.#ofAllMs)
    const known = this.#byAsset.get(assetKey)
    this.#byAsset.set(assetKey, known === undefined ? ms : known + WEIGHT * (ms - known))
  }

  /** How long an attempt takes if it is like earlier ones of its asset, or like all others when its asset never ran. */
  expectedMs(assetKey: string): number {
    return this.#byAsset.get(assetKey) ?? this.#ofAllMs
  }
}
