export interface BucketSize {
  /** How much flows in. */
  readonly perSecond: number
  /** How much it holds. */
  readonly burst: number
}

interface Bucket {
  left: number
  at: number
}

/** Enough for everybody who calls at a time. Beyond, the oldest is forgotten, which fills it. */
const MAX_BUCKETS = 10_000

/** Token buckets by name: each lets so many through at once, and so many a second from then on. */
export class Buckets {
  readonly #buckets = new Map<string, Bucket>()
  #size: BucketSize

  constructor(size: BucketSize) {
    this.#size = size
  }

  resize(size: BucketSize): void {
    this.#size = size
  }

  /** Takes one. Returns 0, or how many milliseconds it takes until there is one. */
  take(name: string, now: number): number {
    const waitMs = this.wait(name, now)
    const bucket = this.#buckets.get(name)
    if (waitMs === 0 && bucket !== undefined) bucket.left -= 1
    return waitMs
  }

  /** How long it takes until there is one; takes none. */
  wait(name: string, now: number): number {
    const { perSecond, burst } = this.#size
    const known = this.#buckets.get(name)
    const bucket = known ?? { left: burst, at: now }
    bucket.left = Math.min(burst, bucket.left + ((now - bucket.at) / 1_000) * perSecond)
    bucket.at = now
    if (known === undefined) this.#add(name, bucket)
    return bucket.left >= 1 ? 0 : Math.ceil(((1 - bucket.left) / perSecond) * 1_000)
  }

  #add(name: string, bucket: Bucket): void {
    this.#buckets.set(name, bucket)
    if (this.#buckets.size <= MAX_BUCKETS) return
    const [oldest] = this.#buckets.keys()
    if (oldest !== undefined) this.#buckets.delete(oldest)
  }
}
