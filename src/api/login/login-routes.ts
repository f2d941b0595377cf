import { z } from 'zod'
import { assert } from '../../lib/assert.ts'
import { ServoError } from '../../lib/error.ts'
import { MINUTE_MS } from '../../lib/time.ts'
import { timestamp } from '../../model/envelope.ts'
import type { AlarmClock } from '../../ports/clock.ts'
import { type Bearers, type Caller, type KnownCaller, unauthenticated } from '../access/access.ts'
import { callingClient } from '../access/client.ts'
import { permits, roles } from '../access/roles.ts'
import { Buckets } from '../limits/buckets.ts'
import { tooManyRequests } from '../limits/limits.ts'
import { answer, textAnswer } from '../routing/answer.ts'
import { openRoute, type Route, route } from '../routing/route.ts'
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

const whoCalls = z.object({ name: z.string(), role: z.enum(roles) })
const signedIn = whoCalls.extend({ expires_at: timestamp })
const loginLink = z.object({ path: z.string(), expires_at: timestamp })

/** No cache may keep who is signed in. */
const NO_STORE = { 'cache-control': 'no-store' }

/** Routes by which a browser signs in with a token, and stays so without showing it again. */
export function loginRoutes({ access, sessions, links, clock }: LoginRoutesOptions): Route[] {
  const attempts = new Buckets({ perSecond: ATTEMPTS / (MINUTE_MS / 1_000), burst: ATTEMPTS })
  return [
    openRoute({
      method: 'GET',
      path: '/login',
      operation: 'getLoginPage',
      summary: 'Shows the page to sign in on.',
      answer: textAnswer('text/html'),
      handle: () => loginPage(),
    }),
    openRoute({
      method: 'POST',
      path: '/auth/login',
      operation: 'logIn',
      summary: 'Signs a browser in with a token, or with the code of a link, and sets its cookie.',
      example: { token: 'servo_k3f9a2xq7m4bwd5e_8Zk0' },
      answer: signedIn,
      problems: [401, 403],
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
      operation: 'logOut',
      summary: 'Ends the session of a browser, and removes its cookie.',
      answer: z.object({ ok: z.literal(true) }),
      problems: [403],
      handle: ({ request }) => answer({ ok: true as const }, 200, { 'set-cookie': sessions.end(request), ...NO_STORE }),
    }),
    route({
      method: 'GET',
      path: '/auth/me',
      operation: 'getCaller',
      summary: 'Says who calls, and with which role.',
      answer: whoCalls,
      needs: 'viewer',
      handle: ({ by: { name, role } }) => answer({ name, role }, 200, NO_STORE),
    }),
    route({
      method: 'POST',
      path: '/auth/links',
      operation: 'createLoginLink',
      summary: 'Makes a link that signs a browser in as the caller, once, within ten minutes.',
      answer: loginLink,
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
