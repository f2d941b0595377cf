import { afterAll, beforeAll, expect, test } from 'vitest'
import { TestIssuer } from '../../../src/testing/access/oidc-issuer.ts'
import { projectOf, TestProject } from '../support/project.ts'
import { type Servo, servo } from '../support/servo.ts'

const ASSETS = `import { asset } from 'servo-flow'\nexport const a = asset('a', { run: () => 1 })\n`
const configOf = (issuer: string): string => `import { defineConfig } from 'servo-flow'
export default defineConfig({
  project: 'shop',
  dirs: ['assets'],
  server: {
    oidc: {
      issuer: '${issuer}',
      audience: 'servo',
      roles: { operator: { groups: ['data', 'ops'] }, viewer: { hd: 'shop.example' } },
      actor: 'email',
    },
    limits: { refusedPerSecond: 30, requestTimeout: '5s' },
  },
})
`
const PUBLIC = { SERVO_PUBLIC_URL: 'https://servo.example' }

let issuer: TestIssuer
let project: TestProject
let server: Servo
let url: string
beforeAll(async () => {
  issuer = await TestIssuer.open()
  project = new TestProject({ 'assets/a.ts': ASSETS, 'servo.config.ts': configOf(issuer.url) })
  server = project.begin(['start', '--port', '0', '--host', '0.0.0.0', '--trusted-proxy', '127.0.0.9'], PUBLIC)
  await server.says(/"message":"server ready"/)
  url = server.url
})
afterAll(async () => {
  issuer.close()
  await project.end()
})

const claims = (more: object = {}) => ({
  sub: 'u-1',
  aud: 'servo',
  exp: Math.floor(Date.now() / 1_000) + 600,
  email: 'ana@shop.example',
  email_verified: true,
  ...more,
})
const api = (path: string): string => `${url}/api/v1/orchestration${path}`
const as = (token: string) => ({ authorization: `Bearer ${token}`, 'content-type': 'application/json' })

test('[U11] a server refuses other machines while it knows nobody there, or not its name, and says what to do', async () => {
  const bare = projectOf({ 'assets/a.ts': ASSETS })
  const nobody = await bare.begin(['start', '--port', '0', '--host', '0.0.0.0'], PUBLIC).ended
  expect(nobody).toMatchObject({ code: 2, stderr: expect.stringContaining('servo tokens create --role admin') })
  await bare.servo('tokens', 'create', '--role', 'admin', '--name', 'ana')
  const nameless = await bare.begin(['start', '--port', '0', '--host', '0.0.0.0']).ended
  expect(nameless).toMatchObject({ code: 2, stderr: expect.stringContaining('Set SERVO_PUBLIC_URL') })
  const proxies = await bare.begin(['start', '--port', '0', '--trusted-proxy', '0.0.0.0/0']).ended
  expect(proxies).toMatchObject({ code: 2, stderr: expect.stringContaining('for --trusted-proxy') })
})

test('[U7] a token of an issuer lets its bearer do what its claims give, and puts them on record', async () => {
  const token = await issuer.sign(claims({ groups: ['data'] }))
  const away = { cwd: '/', env: { SERVO_URL: url, SERVO_TOKEN: token } }
  expect(await servo(['run', 'a'], away)).toMatchObject({ code: 0 })
  const [newest] = await (await project.client()).runs.list({ limit: 1 })
  expect(newest?.asked_by).toBe(`ana@shop.example (${issuer.url.replace('http://', '')})`)
  const viewer = await issuer.sign(claims({ hd: 'shop.example' }))
  const body = JSON.stringify({ select: ['a'] })
  expect((await fetch(api('/runs'), { headers: as(viewer) })).status).toBe(200)
  expect((await fetch(api('/runs'), { method: 'POST', headers: as(viewer), body })).status).toBe(403)
  const none = await fetch(api('/runs'), { headers: as(await issuer.sign(claims())) })
  expect([none.status, await none.json()]).toMatchObject([403, { code: 'not_permitted' }])
  const old = await fetch(api('/runs'), { headers: as(await issuer.sign(claims({ exp: 1 }))) })
  expect([old.status, await old.json()]).toMatchObject([401, { code: 'token_expired' }])
})

test('[U9] a link of servo login signs a browser in, once; its cookie changes things only from a page of the server', async () => {
  const { url: link } = await project.json('login')
  const [page, code] = link.split('#')
  const shown = await fetch(page)
  expect([shown.status, await shown.text()]).toEqual([200, expect.stringContaining('Sign in to Servo')])
  const login = () =>
    fetch(`${url}/auth/login`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ code }),
    })
  const signedIn = await login()
  const [cookie = ''] = signedIn.headers.get('set-cookie')?.split(';') ?? []
  expect([signedIn.status, await signedIn.json()]).toMatchObject([200, { role: 'admin' }])
  expect((await login()).status).toBe(401)
  expect((await fetch(api('/runs'), { headers: { cookie } })).status).toBe(200)
  const pause = (headers: Record<string, string>) =>
    fetch(api('/automation/pause'), {
      method: 'POST',
      headers: { cookie, 'content-type': 'application/json', ...headers },
      body: '{}',
    })
  const { origin } = new URL(url)
  expect((await pause({})).status).toBe(403)
  expect((await pause({ origin })).status).toBe(403)
  expect((await pause({ origin: 'https://evil.example', 'x-servo-csrf': '1' })).status).toBe(403)
  expect((await pause({ origin, 'x-servo-csrf': '1' })).status).toBe(202)
})

test('[U10] who guesses is refused with 429, and those who are known go on', async () => {
  const guesses = await Promise.all(Array.from({ length: 150 }, (_, i) => fetch(api('/runs'), { headers: as(`guess-${i}`) })))
  expect(new Set(guesses.map(({ status }) => status))).toEqual(new Set([401, 429]))
  const refused = guesses.filter(({ status }) => status === 429)
  expect(new Set(refused.map(({ headers }) => headers.get('retry-after')))).toEqual(new Set(['1']))
  expect((await fetch(api('/runs'), { headers: as(project.token) })).status).toBe(200)
  await server.says(/calls? (?:was|were) refused: too_many_requests .* from 127\.0\.0\.1/)
})
