import { sha256 } from '../../lib/hash.ts'
import { MINUTE_MS, toIso } from '../../lib/time.ts'
import type { Clock } from '../../ports/clock.ts'
import { type KnownCaller, unauthenticated } from '../access/access.ts'

export interface LoginLink {
  /** Behind the address of the server. The code is in a part that browsers keep to themselves. */
  readonly path: string
  readonly expires_at: string
}

/** Long enough to change from a terminal to a browser. */
const LIFETIME_MS = 10 * MINUTE_MS
const MAX_LINKS = 100

/** Links that sign a browser in, once each, as whoever asked for them. They end with the process. */
export class LoginLinks {
  readonly #clock: Pick<Clock, 'now'>
  readonly #random: (length: number) => Uint8Array
  readonly #links = new Map<string, { readonly caller: KnownCaller; readonly until: number }>()

  constructor(clock: Pick<Clock, 'now'>, random: (length: number) => Uint8Array) {
    this.#clock = clock
    this.#random = random
  }

  make(caller: KnownCaller): LoginLink {
    const code = Buffer.from(this.#random(32)).toString('base64url')
    const until = this.#clock.now() + LIFETIME_MS
    this.#links.set(sha256(code), { caller, until })
    const [oldest] = this.#links.keys()
    if (this.#links.size > MAX_LINKS && oldest !== undefined) this.#links.delete(oldest)
    return { path: `/login#${code}`, expires_at: toIso(until) }
  }

  /** Whose link this is. It counts once. */
  take(code: string): KnownCaller {
    const key = sha256(code)
    const link = this.#links.get(key)
    this.#links.delete(key)
    if (link !== undefined && link.until > this.#clock.now()) return link.caller
    throw unauthenticated('this link does not count, or no longer', 'servo login prints another.')
  }
}
