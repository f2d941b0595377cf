import { z } from 'zod'
import { assert } from '../../lib/assert.ts'
import { ServoError } from '../../lib/error.ts'
import { MINUTE_MS } from '../../lib/time.ts'
import type { AlarmClock } from '../../ports/clock.ts'
import { type Bearers, type Caller, type KnownCaller, unauthenticated } from '../access/access.ts'
import { callingClient } from '../access/client.ts'
import { permits } from '../access/roles.ts'
import { Buckets } from '../limits/buckets.ts'
import { tooManyRequests } from '../limits/limits.ts'
import { answer, openRoute, type Route, route } from '../routing/route.ts'
import type { LoginLinks } from './login-links.ts'
import { loginPage } from './login-page.ts'
import type { Sessions } from './sessions.ts'

export interface LoginRoutesOptions {
  readonly access: Bearers
  readonly sessions: Sessions
  readonly links: LoginLinks
  readonly clock: Pick<AlarmClock, 'monotonic'>
}

/** A person who mistypes tries a few times; who tries more guesses. */
const ATTEMPTS = 10

const loginBody = z.object({
  /** An API token, a token of an issuer, or the token of the machine. */
  token: z.string().min(1).max(8_192).optional(),
  /** What a link brings instead. */
  code: z.string().min(1).max(200).optional(),
})

/** No cache may keep who is signed in. */
const NO_STORE = { 'cache-control': 'no-store' }

/** Routes by which a browser signs in with a token, and stays so without showing it again. */
export function loginRoutes({ access, sessions, links, clock }: LoginRoutesOptions): Route[] {
  const attempts = new Buckets({ perSecond: ATTEMPTS / (MINUTE_MS / 1_000), burst: ATTEMPTS })
  return [
    openRoute({ method: 'GET', path: '/login', handle: () => loginPage() }),
    openRoute({
      method: 'POST',
      path: '/auth/login',
      body: loginBody,
      handle: async ({ body: { token, code }, request }) => {
        const waitMs = attempts.take(callingClient(request).address, clock.monotonic())
        if (waitMs > 0) throw tooManyRequests('too many attempts to sign in', waitMs)
        const caller = code === undefined ? await bearerOf(access, token, request) : links.take(code)
        if (!permits(caller.role, 'viewer')) throw onlyWorks(caller)
        const { cookie, expires_at } = sessions.open(caller, request)
        return answer({ name: caller.name, role: caller.role, expires_at }, 200, { 'set-cookie': cookie, ...NO_STORE })
      },
    }),
    openRoute({
      method: 'POST',
      path: '/auth/logout',
      handle: ({ request }) => answer({ ok: true }, 200, { 'set-cookie': sessions.end(request), ...NO_STORE }),
    }),
    route({
      method: 'GET',
      path: '/auth/me',
      needs: 'viewer',
      handle: ({ by: { name, role } }) => answer({ name, role }, 200, NO_STORE),
    }),
    route({
      method: 'POST',
      path: '/auth/links',
      needs: 'viewer',
      statuses: [201],
      handle: ({ by }) => answer(links.make(known(by)), 201, NO_STORE),
    }),
  ]
}

/** Everybody whom the router of a server lets in was looked up. */
function known(caller: Caller): KnownCaller {
  assert(isKnown(caller), `${caller.name} has no token`)
  return caller
}

const isKnown = (caller: Caller): caller is KnownCaller => 'credential' in caller

async function bearerOf(access: Bearers, token: string | undefined, request: Request): Promise<KnownCaller> {
  if (token === undefined) throw unauthenticated('the request has no token', 'Send { "token": "…" }.')
  return await access.bearer(token, request.headers)
}

const onlyWorks = ({ name }: Caller): ServoError =>
  new ServoError('invalid', 'not_permitted', `${name} takes work and cannot look at anything`, {
    hint: 'Sign in with a token of another role: servo tokens create --role viewer --name …',
  })
