import { BlockList } from 'node:net'
import { beforeEach, describe, expect, test } from 'vitest'
import { memoryStore } from '../../adapters/memory/object-store.ts'
import { HOUR_MS, MINUTE_MS } from '../../lib/time.ts'
import { seededBytes } from '../../testing/seeded-bytes.ts'
import { VirtualClock } from '../../testing/virtual-clock.ts'
import { type AppOptions, localApp } from '../app.ts'
import { ApiTokens } from '../tokens/api-tokens.ts'
import { tokenAccess } from '../tokens/token-access.ts'
import { LoginLinks } from './login-links.ts'
import { loginRoutes } from './login-routes.ts'
import { CSRF_HEADER, Sessions } from './sessions.ts'

const MACHINE = 'token-of-the-machine'
const OWN = 'http://127.0.0.1:4400'
const PAGE = { origin: OWN, 'sec-fetch-site': 'same-origin', [CSRF_HEADER]: '1' }

let clock: VirtualClock
let tokens: ApiTokens
let app: ReturnType<typeof localApp>
beforeEach(() => {
  clock = new VirtualClock(Date.UTC(2026, 0, 1))
  const scope = { tenant_id: 'acme', workspace_id: 'analytics' }
  tokens = new ApiTokens({ store: memoryStore(), scope, clock, random: seededBytes(1) })
  app = opened(MACHINE)
})

function opened(secret: string): ReturnType<typeof localApp> {
  const oidc = {
    recall: () => {
      throw new Error('nobody came from an issuer')
    },
  }
  const sessions = new Sessions({ secret, clock, random: seededBytes(2), tokens, oidc })
  const access = tokenAccess(secret, tokens, { sessions })
  const login = loginRoutes({ access, sessions, links: new LoginLinks(clock, seededBytes(3)), clock })
  const proxies = new BlockList()
  proxies.addAddress('10.0.0.9')
  const unused = {} as Pick<
    AppOptions,
    'runs' | 'statuses' | 'assets' | 'schedules' | 'sensors' | 'backfills' | 'whys' | 'retention' | 'alerts'
  >
  return localApp({
    ...unused,
    tokens,
    access,
    login,
    instance: 'one',
    proxies: () => proxies,
    own: () => ({ hosts: ['127.0.0.1', 'localhost'], publicUrl: new URL('https://servo.example') }),
  })
}

interface Asked {
  readonly body?: object
  readonly headers?: Record<string, string>
  /** The address at the other end of the connection. */
  readonly from?: string
}

async function ask(method: string, path: string, { body, headers = {}, from = '127.0.0.1' }: Asked = {}) {
  const init = { method, headers: { host: '127.0.0.1:4400', 'content-type': 'application/json', ...headers } }
  const request = new Request(`${OWN}${path}`, { ...init, ...(body !== undefined && { body: JSON.stringify(body) }) })
  const response = await app.fetch(request, { incoming: { socket: { remoteAddress: from }, complete: true } })
  const cookie = response.headers.get('set-cookie') ?? ''
  const text = await response.text()
  const answer = text.startsWith('{') ? JSON.parse(text) : { text }
  return { status: response.status, answer, cookie, value: cookie.split(';')[0] ?? '', headers: response.headers }
}

const login = (body: object, more: Asked = {}) =>
  ask('POST', '/auth/login', { body, ...more, headers: { ...PAGE, ...more.headers } })
const me = (cookie: string) => ask('GET', '/auth/me', { headers: { cookie } })

describe('[U9] a browser that is signed in', () => {
  test('has a cookie that no script can read and no other site can send, and is who its token is', async () => {
    const { token, token_id } = await tokens.create({ name: 'ana', role: 'operator' }, 'root')
    const { status, answer, cookie, value } = await login({ token })
    const name = `ana (${token_id})`
    expect([status, answer]).toEqual([200, { name, role: 'operator', expires_at: '2026-01-01T12:00:00.000Z' }])
    expect(cookie).toMatch(/^servo_[0-9a-f]{8}=[\w.-]+; Path=\/; Max-Age=43200; HttpOnly; SameSite=Strict$/)
    expect(cookie).not.toContain(token.slice(-43))
    expect(await me(value)).toMatchObject({ status: 200, answer: { name, role: 'operator' } })
  })

  test('is signed out within a second after its token was revoked, when its time is over, and by signing out', async () => {
    const { token, token_id } = await tokens.create({ name: 'ana', role: 'viewer' }, 'root')
    const [first, second] = [(await login({ token })).value, (await login({ token })).value]
    const out = await ask('POST', '/auth/logout', { headers: { ...PAGE, cookie: first } })
    expect([out.status, out.cookie]).toEqual([200, expect.stringMatching(/=; Path=\/; Max-Age=0; HttpOnly/)])
    expect((await me(first)).status).toBe(401)
    expect((await me(second)).status).toBe(200)
    await tokens.revoke(token_id, 'root')
    await clock.advance(1_000)
    expect(await me(second)).toMatchObject({ status: 401, answer: { code: 'token_revoked' } })
    const machine = (await login({ token: MACHINE })).value
    expect((await me(machine)).status).toBe(200)
    await clock.advance(12 * HOUR_MS)
    expect((await me(machine)).status).toBe(401)
  })

  test('is signed out when the secrets of the workspace are replaced, and no project takes the cookie of another', async () => {
    const { value } = await login({ token: MACHINE })
    app = opened('another token of another machine')
    expect((await me(value)).status).toBe(401)
    const [, session] = value.split('=')
    const { value: others } = await login({ token: 'another token of another machine' })
    const [name] = others.split('=')
    expect((await me(`${name}=${session}`)).status).toBe(401)
    expect((await me(`${value}; ${others}`)).status).toBe(200)
  })

  test('says nothing that a program says better: a token beside the cookie counts alone', async () => {
    const { value } = await login({ token: MACHINE })
    const headers = { cookie: value, authorization: 'Bearer nonsense' }
    expect((await ask('GET', '/auth/me', { headers })).status).toBe(401)
    expect((await ask('GET', '/auth/me', { headers: { ...headers, authorization: 'Basic YTpi' } })).status).toBe(401)
  })

  test('by https has a cookie that is sent by https alone, whether a proxy or the page says so', async () => {
    const forwarded = { 'x-forwarded-proto': 'https', 'x-forwarded-host': 'servo.example', origin: 'https://servo.example' }
    for (const from of ['10.0.0.9', '127.0.0.1']) {
      const { status, cookie } = await login({ token: MACHINE }, { from, headers: { ...forwarded, host: 'servo.example' } })
      expect([status, cookie]).toEqual([200, expect.stringMatching(/^__Host-servo_.*; Path=\/; .*; Secure$/)])
    }
  })
})

describe('[U9] signing in', () => {
  test.each([
    ['an unknown token', { token: 'servo' }, 401],
    ['no token', {}, 401],
    ['an unknown code', { code: 'x' }, 401],
    ['another field', { password: 'x' }, 400],
  ])('is refused with %s', async (_, body, status) => {
    const refused = await login(body)
    expect([refused.status, refused.cookie]).toEqual([status, ''])
  })

  test('is refused to a worker, which could look at nothing', async () => {
    const { token } = await tokens.create({ name: 'gpu', role: 'worker' }, 'root')
    expect(await login({ token })).toMatchObject({ status: 403, answer: { code: 'not_permitted' }, cookie: '' })
  })

  test('is refused to pages of other sites', async () => {
    for (const headers of [{ origin: 'https://evil.example' }, { 'sec-fetch-site': 'same-site' }])
      expect(await login({ token: MACHINE }, { headers })).toMatchObject({ status: 403, cookie: '' })
    const form = { 'content-type': 'text/plain' }
    expect(await login({ token: MACHINE }, { headers: form })).toMatchObject({ status: 415, cookie: '' })
  })

  test('may be tried ten times a minute from an address, which only a trusted proxy may name', async () => {
    const statuses = async (count: number, more: Asked) => {
      const all = new Set<number>()
      for (let i = 0; i < count; i++) all.add((await login({ token: 'guess' }, more)).status)
      return [...all]
    }
    expect(await statuses(10, {})).toEqual([401])
    // Whatever a stranger says of where it comes from.
    const refused = await login({ token: MACHINE }, { headers: { 'x-forwarded-for': '203.0.113.7' } })
    expect(refused).toMatchObject({ status: 429, answer: { code: 'too_many_requests' } })
    expect(refused.headers.get('retry-after')).toBe('6')
    expect(await statuses(10, { from: '10.0.0.9', headers: { 'x-forwarded-for': '203.0.113.7' } })).toEqual([401])
    expect(await statuses(1, { from: '10.0.0.9', headers: { 'x-forwarded-for': '203.0.113.7' } })).toEqual([429])
    expect(await statuses(1, { from: '10.0.0.9', headers: { 'x-forwarded-for': '203.0.113.8' } })).toEqual([401])
    await clock.advance(6_000)
    expect((await login({ token: MACHINE })).status).toBe(200)
  })
})

describe('[U9] a link', () => {
  const makeLink = async (token = MACHINE) =>
    (await ask('POST', '/auth/links', { headers: { authorization: `Bearer ${token}`, 'x-servo-user': 'ana' } })).answer

  test('signs a browser in once, as who asked for it', async () => {
    const { path } = await makeLink()
    const [page, code] = path.split('#')
    expect(page).toBe('/login')
    const { status, answer, value } = await login({ code })
    expect([status, answer]).toMatchObject([200, { name: 'ana', role: 'admin' }])
    expect(await me(value)).toMatchObject({ answer: { name: 'ana', role: 'admin' } })
    expect((await login({ code })).status).toBe(401)
  })

  test('lasts ten minutes, gives no more than its owner has, and ends with their token', async () => {
    const { token, token_id } = await tokens.create({ name: 'looker', role: 'viewer' }, 'root')
    const links = [await makeLink(token), await makeLink(token)]
    const codes = links.map(({ path }) => path.split('#')[1])
    const { answer, value } = await login({ code: codes[0] })
    expect(answer).toMatchObject({ name: `looker (${token_id})`, role: 'viewer' })
    await tokens.revoke(token_id, 'root')
    await clock.advance(1_000)
    expect((await me(value)).status).toBe(401)
    await clock.advance(10 * MINUTE_MS)
    expect((await login({ code: codes[1] })).status).toBe(401)
  })
})

test('[U9] the page to sign in on runs nothing but itself, is shown in no other page, and opens from a link anywhere', async () => {
  const headers = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' }
  const page = await ask('GET', '/login', { headers })
  expect(page.status).toBe(200)
  const policy = page.headers.get('content-security-policy') ?? ''
  expect(policy).toContain("default-src 'none'; script-src 'sha256-")
  expect(policy).toContain("frame-ancestors 'none'")
  expect(policy).not.toContain('unsafe')
  const { status } = await ask('GET', '/auth/me', { headers: { ...headers, cookie: (await login({ token: MACHINE })).value } })
  expect(status).toBe(403)
})
