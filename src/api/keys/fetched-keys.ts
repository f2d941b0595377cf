import type { CryptoKey } from 'jose'
import { messageOf, ServoError } from '../../lib/error.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../lib/time.ts'
import type { Clock } from '../../ports/clock.ts'

/** Keys that somebody publishes, by which their signatures are verified. */
export interface PublicKeys {
  /** Undefined if there is no such key. Throws `unavailable` if that cannot be known now. */
  keyOf(kid: string): Promise<PublishedKey | undefined>
}

/** A key with the algorithm it is for. */
export interface PublishedKey {
  readonly key: CryptoKey
  readonly alg: string
}

export interface FetchedKeysOptions {
  readonly clock: Pick<Clock, 'now'>
  /** Whose keys they are, in words: `the keys of Google`. */
  readonly name: string
  /** Fetches the keys by their names, and says how long they may be kept. */
  readonly load: (get: (url: string) => Promise<FetchedJson>) => Promise<LoadedKeys>
  readonly fetch?: typeof globalThis.fetch
  /** Called with the reason when the keys cannot be fetched. */
  readonly onTrouble?: (error: unknown) => void
}

export interface LoadedKeys {
  readonly keys: ReadonlyMap<string, PublishedKey>
  readonly ageMs: number
}

/** JSON that was fetched, and how long it may be kept. */
export interface FetchedJson {
  readonly json: unknown
  readonly ageMs: number
}

/** Anybody can send tokens that name a key of their fancy; the publisher is asked at most this often because of them. */
const UNKNOWN_KEY_MS = MINUTE_MS
/** After a fetch that failed. Each caller that comes meanwhile is answered at once. */
const FAILURE_MS = 5 * SECOND_MS
const TIMEOUT_MS = 5 * SECOND_MS
/** If the answer does not say how long it is valid. Publishers keep a new key unused for longer. */
const DEFAULT_AGE_MS = HOUR_MS
/** Keys that cannot be fetched again still count for this long: a key is withdrawn at once only if it was stolen. */
const MAX_STALE_MS = DAY_MS
/** A hundred times the size of a usual set of keys. */
const MAX_BYTES = 1 << 20

interface Fetched extends LoadedKeys {
  readonly at: number
  readonly freshUntil: number
}

/** Fetches keys when a token needs them, once for all that wait, and keeps them for as long as their publisher says. */
export class FetchedKeys implements PublicKeys {
  readonly #options: FetchedKeysOptions
  #fetched: Fetched | undefined
  #fetching: Promise<void> | undefined
  /** When the last fetch failed; undefined if it did not. */
  #failedAt: number | undefined

  constructor(options: FetchedKeysOptions) {
    this.#options = options
  }

  async keyOf(kid: string): Promise<PublishedKey | undefined> {
    if (this.#mustFetch(kid)) {
      this.#fetching ??= this.#fetchKeys()
      await this.#fetching
    }
    const { clock, name } = this.#options
    const known = this.#fetched
    const isTooOld = known === undefined || clock.now() - known.freshUntil > MAX_STALE_MS
    const key = isTooOld ? undefined : known.keys.get(kid)
    // A key that is not among the old ones may be among the new ones.
    if (key === undefined && this.#failedAt !== undefined)
      throw new ServoError('unavailable', 'keys_unreachable', `${name} cannot be fetched at the moment`, {
        hint: 'Nothing was done. Try again.',
        facts: { retry_after_sec: MINUTE_MS / SECOND_MS },
      })
    return key
  }

  #mustFetch(kid: string): boolean {
    const now = this.#options.clock.now()
    if (this.#fetching !== undefined) return !this.#fetched?.keys.has(kid)
    if (this.#failedAt !== undefined && Math.abs(now - this.#failedAt) < FAILURE_MS) return false
    const known = this.#fetched
    if (known === undefined || now >= known.freshUntil || now < known.at) return true
    return !known.keys.has(kid) && now - known.at >= UNKNOWN_KEY_MS
  }

  async #fetchKeys(): Promise<void> {
    const { clock, name, load, onTrouble } = this.#options
    try {
      const { keys, ageMs } = await load((url) => this.#get(url))
      const at = clock.now()
      // At least as long as keys are not asked for again because of an unknown one, at most a day.
      this.#fetched = { keys, ageMs, at, freshUntil: at + Math.min(Math.max(ageMs, UNKNOWN_KEY_MS), DAY_MS) }
      this.#failedAt = undefined
    } catch (error) {
      this.#failedAt = clock.now()
      const why = `${name} could not be fetched: ${messageOf(error)}`
      onTrouble?.(new ServoError('unavailable', 'keys_unreachable', why, { cause: error }))
    } finally {
      this.#fetching = undefined
    }
  }

  async #get(url: string): Promise<FetchedJson> {
    const { fetch = globalThis.fetch } = this.#options
    const answer = await fetch(url, { signal: AbortSignal.timeout(TIMEOUT_MS), redirect: 'error' })
    if (!answer.ok) throw new Error(`${url} answers ${answer.status}`)
    let text = ''
    const decoder = new TextDecoder()
    for await (const chunk of answer.body ?? []) {
      text += decoder.decode(chunk, { stream: true })
      if (text.length > MAX_BYTES) throw new Error(`${url} answers with more than ${MAX_BYTES} bytes`)
    }
    return { json: JSON.parse(text), ageMs: ageOf(answer.headers) }
  }
}

/** How long the answer may be kept. */
function ageOf(headers: Headers): number {
  const [, seconds] = /(?:^|[\s,])max-age=(\d{1,9})/i.exec(headers.get('cache-control') ?? '') ?? []
  if (seconds === undefined) return DEFAULT_AGE_MS
  const age = Number(seconds) - Number(headers.get('age') ?? 0)
  return Number.isFinite(age) ? age * SECOND_MS : 0
}
