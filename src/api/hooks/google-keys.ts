import type { CryptoKey } from 'jose'
import { z } from 'zod'
import { messageOf, ServoError } from '../../lib/error.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS } from '../../lib/time.ts'
import type { Clock } from '../../ports/clock.ts'
import { notReady } from './refusals.ts'

/** Where Google publishes the keys that sign the tokens of its pushes. */
const GOOGLE_KEYS_URL = 'https://www.googleapis.com/oauth2/v3/certs'

/** The keys by which the tokens of pushes are verified. */
export interface PushKeys {
  /** Undefined if there is no such key. Throws `unavailable` if that cannot be known now. */
  keyOf(kid: string): Promise<CryptoKey | undefined>
}

export interface GoogleKeysOptions {
  readonly clock: Pick<Clock, 'now'>
  readonly url?: string
  readonly fetch?: typeof globalThis.fetch
  /** Called with the reason when the keys cannot be fetched. */
  readonly onTrouble?: (error: unknown) => void
}

const keySet = z.object({ keys: z.array(z.unknown()) })
/** The public part of a key that may sign tokens. Keys of other kinds are passed over. */
const signingKey = z.object({
  kid: z.string(),
  kty: z.literal('RSA'),
  use: z.literal('sig').optional(),
  alg: z.literal('RS256').optional(),
  n: z.string(),
  e: z.string(),
})

/** Anybody can send tokens that name a key of their fancy; Google is asked at most this often because of them. */
const UNKNOWN_KEY_MS = MINUTE_MS
/** After a fetch that failed. Each push that comes meanwhile is answered at once. */
const FAILURE_MS = 5 * SECOND_MS
const TIMEOUT_MS = 5 * SECOND_MS
/** If the answer does not say how long it is valid. Google keeps a new key unused for longer. */
const DEFAULT_AGE_MS = HOUR_MS
/** Keys that cannot be fetched again still count for this long: Google withdraws a key at once only if it was stolen. */
const MAX_STALE_MS = DAY_MS

interface Fetched {
  readonly keys: ReadonlyMap<string, CryptoKey>
  readonly at: number
  readonly freshUntil: number
}

/** Fetches Google's keys when a token needs them, once for all that wait, and keeps them for as long as Google says. */
export class GoogleKeys implements PushKeys {
  readonly #clock: Pick<Clock, 'now'>
  readonly #url: string
  readonly #fetch: typeof globalThis.fetch
  #fetched: Fetched | undefined
  #fetching: Promise<void> | undefined
  readonly #onTrouble: (error: unknown) => void
  /** When the last fetch failed; undefined if it did not. */
  #failedAt: number | undefined

  constructor({ clock, url = GOOGLE_KEYS_URL, fetch = globalThis.fetch, onTrouble }: GoogleKeysOptions) {
    this.#onTrouble = onTrouble ?? (() => undefined)
    this.#clock = clock
    this.#url = url
    this.#fetch = fetch
  }

  async keyOf(kid: string): Promise<CryptoKey | undefined> {
    if (this.#mustFetch(kid)) {
      this.#fetching ??= this.#fetchKeys()
      await this.#fetching
    }
    const known = this.#fetched
    const isTooOld = known === undefined || this.#clock.now() - known.freshUntil > MAX_STALE_MS
    const key = isTooOld ? undefined : known.keys.get(kid)
    // A key that is not among the old ones may be among the new ones.
    if (key === undefined && this.#failedAt !== undefined)
      throw notReady('keys_unreachable', 'the keys of Google cannot be fetched at the moment', 'Nothing was done. Try again.')
    return key
  }

  #mustFetch(kid: string): boolean {
    const now = this.#clock.now()
    if (this.#fetching !== undefined) return !this.#fetched?.keys.has(kid)
    if (this.#failedAt !== undefined && Math.abs(now - this.#failedAt) < FAILURE_MS) return false
    const known = this.#fetched
    if (known === undefined || now >= known.freshUntil || now < known.at) return true
    return !known.keys.has(kid) && now - known.at >= UNKNOWN_KEY_MS
  }

  async #fetchKeys(): Promise<void> {
    try {
      const answer = await this.#fetch(this.#url, { signal: AbortSignal.timeout(TIMEOUT_MS), redirect: 'error' })
      if (!answer.ok) throw new Error(`${this.#url} answers ${answer.status}`)
      const keys = await importKeys(await answer.json())
      const at = this.#clock.now()
      this.#fetched = { keys, at, freshUntil: at + ageOf(answer.headers) }
      this.#failedAt = undefined
    } catch (error) {
      this.#failedAt = this.#clock.now()
      const why = `the keys that sign pushes of Pub/Sub could not be fetched from ${this.#url}: ${messageOf(error)}`
      this.#onTrouble(new ServoError('unavailable', 'keys_unreachable', why, { cause: error }))
    } finally {
      this.#fetching = undefined
    }
  }
}

async function importKeys(answer: unknown): Promise<Map<string, CryptoKey>> {
  const { importJWK } = await import('jose')
  const keys = new Map<string, CryptoKey>()
  for (const each of keySet.parse(answer).keys) {
    const { data } = signingKey.safeParse(each)
    if (data !== undefined) keys.set(data.kid, await importJWK({ kty: data.kty, n: data.n, e: data.e }, 'RS256'))
  }
  return keys
}

/** How long the answer may be kept. */
function ageOf(headers: Headers): number {
  const [, seconds] = /(?:^|[\s,])max-age=(\d{1,9})/i.exec(headers.get('cache-control') ?? '') ?? []
  if (seconds === undefined) return DEFAULT_AGE_MS
  const age = Number(seconds) - Number(headers.get('age') ?? 0)
  // At least as long as keys are not asked for again because of an unknown one, at most a day.
  return Math.min(Math.max(Number.isFinite(age) ? age * SECOND_MS : 0, UNKNOWN_KEY_MS), DAY_MS)
}
