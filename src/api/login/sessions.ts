import { timingSafeEqual } from 'node:crypto'
import { z } from 'zod'
import { hmacSha256, sha256 } from '../../lib/hash.ts'
import { HOUR_MS, SECOND_MS, toIso } from '../../lib/time.ts'
import type { Clock } from '../../ports/clock.ts'
import { type Caller, type Credential, type KnownCaller, unauthenticated } from '../access/access.ts'
import { callingClient } from '../access/client.ts'
import { roles } from '../access/roles.ts'
import { forbidden } from '../access/strangers.ts'

export interface SessionsOptions {
  /** Signs sessions. Whoever has it is an administrator already. */
  readonly secret: string
  readonly clock: Pick<Clock, 'now'>
  readonly random: (length: number) => Uint8Array
  /** What the bearer of an API token may do now. */
  readonly tokens: { recall(id: string): Promise<KnownCaller> }
  /** What somebody whom an issuer vouched for may do now. */
  readonly oidc: { recall(credential: Credential & { kind: 'oidc' }): Pick<Caller, 'name' | 'role'> }
}

/** A day of work. */
const LIFETIME_MS = 12 * HOUR_MS
/** Sessions that were ended before their time, as many as are remembered. */
const MAX_ENDED = 10_000
/** Longer than any session. */
const MAX_LENGTH = 4_096
/**
 * A page of another site can make a browser send cookies, and cannot make it send this header without asking first, which this server
 * never grants.
 */
export const CSRF_HEADER = 'x-servo-csrf'

const session = z.object({
  id: z.string(),
  name: z.string(),
  credential: z.discriminatedUnion('kind', [
    z.object({ kind: z.literal('machine') }),
    z.object({ kind: z.literal('token'), id: z.string() }),
    z.object({
      kind: z.literal('oidc'),
      issuer: z.string(),
      version: z.string(),
      name: z.string(),
      role: z.enum(roles),
      until: z.number(),
    }),
  ]),
  expires_at: z.number(),
})
type Session = z.infer<typeof session>

export interface OpenedSession {
  readonly cookie: string
  readonly expires_at: string
}

/**
 * Browsers that are signed in. A session is a cookie with a signature; what its user may do is looked up with every request, so that it
 * ends with the token that opened it.
 */
export class Sessions {
  readonly #options: SessionsOptions
  readonly #key: Uint8Array
  readonly #name: string
  readonly #ended = new Set<string>()

  constructor(options: SessionsOptions) {
    this.#options = options
    this.#key = hmacSha256(options.secret, 'servo browser sessions 1')
    // Cookies of one machine are shared by all its ports, so that two projects need two names.
    this.#name = `servo_${sha256(this.#key).slice(0, 8)}`
  }

  /** Opens a session for the browser that made this request. */
  open({ name, credential }: KnownCaller, request: Request): OpenedSession {
    const now = this.#options.clock.now()
    const until = now + LIFETIME_MS
    const expires_at = credential.kind === 'oidc' ? Math.min(until, credential.until) : until
    const id = Buffer.from(this.#options.random(12)).toString('base64url')
    const body = Buffer.from(JSON.stringify({ id, name, credential, expires_at } satisfies Session)).toString('base64url')
    const ageSec = Math.floor((expires_at - now) / SECOND_MS)
    return { cookie: this.#cookie(`${body}.${this.#signature(body)}`, ageSec, request), expires_at: toIso(expires_at) }
  }

  /** The caller whose browser is signed in; undefined if the request has no session. Throws if it has one that does not count. */
  callerOf(request: Request): Promise<KnownCaller> | undefined {
    const given = this.#given(request)
    return given === undefined ? undefined : this.#callerOf(given, request)
  }

  /** Ends the session of the request, if it has one, and returns the cookie that removes it from the browser. */
  end(request: Request): string {
    const given = this.#given(request)
    if (given !== undefined) {
      refuseForged(request)
      const ended = this.#verified(given)
      if (ended !== undefined) this.#forget(ended.id)
    }
    return this.#cookie('', 0, request)
  }

  async #callerOf(given: string, request: Request): Promise<KnownCaller> {
    if (request.method !== 'GET' && request.method !== 'HEAD') refuseForged(request)
    const found = this.#verified(given)
    if (found === undefined || this.#ended.has(found.id) || found.expires_at <= this.#options.clock.now())
      throw unauthenticated('the browser is no longer signed in', 'Sign in again at /login.')
    const { credential, name } = found
    if (credential.kind === 'token') return await this.#options.tokens.recall(credential.id)
    if (credential.kind === 'oidc') return { ...this.#options.oidc.recall(credential), credential }
    return { name, role: 'admin', credential }
  }

  #given(request: Request): string | undefined {
    const cookies = request.headers.get('cookie')
    if (cookies === null) return undefined
    const names = callingClient(request).protocol === 'https' ? [`__Host-${this.#name}`] : [`__Host-${this.#name}`, this.#name]
    for (const name of names) {
      const found = cookies.split(';').find((each) => each.trimStart().startsWith(`${name}=`))
      if (found !== undefined) return found.trim().slice(name.length + 1)
    }
    return undefined
  }

  #verified(given: string): Session | undefined {
    const [body = '', signature = '', ...rest] = given.length > MAX_LENGTH ? [] : given.split('.')
    const [a, b] = [Buffer.from(signature), Buffer.from(this.#signature(body))]
    if (rest.length > 0 || a.length !== b.length || !timingSafeEqual(a, b)) return undefined
    // Nobody else can have made it, but perhaps an earlier version.
    return session.safeParse(JSON.parse(Buffer.from(body, 'base64url').toString())).data
  }

  #signature(body: string): string {
    return Buffer.from(hmacSha256(this.#key, body)).toString('base64url')
  }

  #forget(id: string): void {
    this.#ended.add(id)
    const [oldest] = this.#ended
    if (this.#ended.size > MAX_ENDED && oldest !== undefined) this.#ended.delete(oldest)
  }

  #cookie(value: string, ageSec: number, request: Request): string {
    const isSafe = callingClient(request).protocol === 'https' || request.headers.get('origin')?.startsWith('https:')
    const name = isSafe ? `__Host-${this.#name}` : this.#name
    return `${name}=${value}; Path=/; Max-Age=${ageSec}; HttpOnly; SameSite=Strict${isSafe ? '; Secure' : ''}`
  }
}

/** Refuses what a page of another site could have made the browser send. Whose page it was has been checked, if the browser said it. */
function refuseForged({ headers }: Request): void {
  if (headers.get('origin') === null) throw forbidden('the browser did not say which page it sends this for')
  if (headers.get(CSRF_HEADER) === null) throw forbidden(`a request with a cookie needs the header ${CSRF_HEADER}: 1`)
}
