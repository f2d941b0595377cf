import { exportSPKI, generateKeyPair, type JWTPayload, UnsecuredJWT } from 'jose'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { OidcIssuer as Settings } from '../../contract/server-settings.ts'
import { DAY_MS, MINUTE_MS, SECOND_MS } from '../../lib/time.ts'
import { TestIssuer } from '../../testing/access/oidc-issuer.ts'
import { VirtualClock } from '../../testing/virtual-clock.ts'
import { OidcTokens } from './oidc-tokens.ts'

let issuer: TestIssuer
let clock: VirtualClock
let tokens: OidcTokens
let troubles: unknown[]
beforeEach(async () => {
  issuer = await TestIssuer.open()
  clock = new VirtualClock(Date.UTC(2026, 0, 1))
  troubles = []
  tokens = new OidcTokens({ clock, onTrouble: (error) => troubles.push(error) })
  trust({})
})
afterEach(() => issuer.close())

const trust = (changes: Partial<Settings>): void =>
  tokens.use([
    {
      issuer: issuer.url,
      audience: ['servo', 'other'],
      roles: {
        admin: { groups: ['platform'] },
        operator: { email: ['ana@shop.example'] },
        viewer: { groups: ['data'], hd: ['shop.example'] },
      },
      actor: 'sub',
      ...changes,
    },
  ])

const nowSec = (): number => Math.floor(clock.now() / SECOND_MS)
const claims = (changes: JWTPayload = {}): JWTPayload => ({
  sub: 'u-17',
  aud: 'servo',
  exp: nowSec() + 600,
  groups: ['sales', 'platform'],
  ...changes,
})
const host = (): string => issuer.url.replace('http://', '')

describe('[U7] the bearer of a token of an issuer', () => {
  test('is who its subject claim says, with the issuer in brackets, and has the role that the claims give', async () => {
    expect(await tokens.bearer(await issuer.sign(claims()))).toMatchObject({ name: `u-17 (${host()})`, role: 'admin' })
  })

  test('has the highest role of those whose claims it all has', async () => {
    const roleOf = async (changes: JWTPayload) => (await tokens.bearer(await issuer.sign(claims(changes))))?.role
    expect(await roleOf({ groups: 'data', hd: 'shop.example' })).toBe('viewer')
    expect(await roleOf({ groups: ['data', 'platform'], hd: 'shop.example' })).toBe('admin')
    expect(await roleOf({ groups: [], email: 'ana@shop.example', email_verified: true })).toBe('operator')
    trust({
      roles: {
        viewer: 'everyone',
        operator: { 'realm_access.roles': ['ops'] },
        worker: { 'https://shop.example/kind': ['gpu'] },
      },
    })
    expect(await roleOf({})).toBe('viewer')
    expect(await roleOf({ realm_access: { roles: ['ops'] } })).toBe('operator')
    trust({ roles: { worker: { 'https://shop.example/kind': ['gpu'] } } })
    expect(await roleOf({ 'https://shop.example/kind': 'gpu' })).toBe('worker')
  })

  test.each([
    ['none of the claims', { groups: ['sales'] }],
    ['some of the claims of a role', { groups: ['data'] }],
    ['an address that is not verified', { groups: [], email: 'ana@shop.example' }],
    ['a claim of another type', { groups: { platform: true } }],
  ])('is refused with 403 with %s', async (_, changes) => {
    await expect(tokens.bearer(await issuer.sign(claims(changes as JWTPayload)))).rejects.toMatchObject({
      code: 'not_permitted',
    })
  })

  test('goes on record by the claim that the project names, if that can be put on record', async () => {
    trust({ actor: 'email' })
    const email = 'ana@shop.example'
    expect(await tokens.bearer(await issuer.sign(claims({ email, email_verified: true })))).toMatchObject({
      name: `${email} (${host()})`,
    })
    for (const each of [
      {},
      { email },
      { email: 'a\u202Eb', email_verified: true },
      { email: 'a'.repeat(300), email_verified: true },
    ])
      await expect(tokens.bearer(await issuer.sign(claims(each)))).rejects.toMatchObject({ code: 'unauthenticated' })
  })
})

describe('[U7] a token that does not count', () => {
  const refused: [string, () => Promise<string>, string][] = [
    ['for another audience', () => issuer.sign(claims({ aud: 'billing' })), 'unauthenticated'],
    ['without an audience', () => issuer.sign({ sub: 'u-17', exp: nowSec() + 600, groups: ['platform'] }), 'unauthenticated'],
    ['without an end', () => issuer.sign({ sub: 'u-17', aud: 'servo', groups: ['platform'] }), 'unauthenticated'],
    ['without a subject', () => issuer.sign({ aud: 'servo', exp: nowSec() + 600, groups: ['platform'] }), 'unauthenticated'],
    ['that has expired', () => issuer.sign(claims({ exp: nowSec() - 61 })), 'token_expired'],
    ['that is not valid yet', () => issuer.sign(claims({ nbf: nowSec() + 61 })), 'unauthenticated'],
    ['by an unknown key', () => issuer.sign(claims(), { kid: 'k9' }), 'unauthenticated'],
    [
      'by the key of somebody else',
      async () => issuer.sign(claims(), { key: (await generateKeyPair('RS256')).privateKey }),
      'unauthenticated',
    ],
    [
      'by an algorithm that the key is not for',
      async () => issuer.sign(claims(), { key: (await generateKeyPair('ES256')).privateKey, alg: 'ES256' }),
      'unauthenticated',
    ],
    [
      'by the public key as a secret',
      async () => issuer.sign(claims(), { key: new TextEncoder().encode(await exportSPKI(issuer.publicKey)), alg: 'HS256' }),
      'unauthenticated',
    ],
    [
      'by a secret among the keys',
      () => issuer.sign(claims(), { key: new Uint8Array(32), alg: 'HS256', kid: 'secret' }),
      'unauthenticated',
    ],
    ['whose signature is another one', async () => `${(await issuer.sign(claims())).slice(0, -6)}AAAAAA`, 'unauthenticated'],
    ['that is not signed', async () => new UnsecuredJWT({ iss: issuer.url, ...claims() }).encode(), 'unauthenticated'],
  ]
  test.each(refused)('%s', async (_, token, code) => {
    await expect(tokens.bearer(await token())).rejects.toMatchObject({ code })
  })

  test('of another issuer, or of none, is no token of an issuer', async () => {
    expect(await tokens.bearer(await issuer.sign(claims({ iss: 'https://evil.example' })))).toBeUndefined()
    expect(await tokens.bearer(await issuer.sign(claims({ iss: `${issuer.url}/` })))).toBeUndefined()
    for (const text of ['', 'servo_x_y', 'a.b.c', '..', `${'a'.repeat(9_000)}.b.c`])
      expect(await tokens.bearer(text)).toBeUndefined()
    expect(issuer.asked).toBe(0)
  })

  test('clocks may differ by a minute', async () => {
    for (const changes of [{ exp: nowSec() - 55 }, { nbf: nowSec() + 55 }])
      expect(await tokens.bearer(await issuer.sign(claims(changes)))).toMatchObject({ role: 'admin' })
  })
})

describe('[U8] the keys of an issuer', () => {
  const bearer = async () => await tokens.bearer(await issuer.sign(claims({ exp: nowSec() + 600 })))

  test('are fetched once for all that wait, and kept', async () => {
    const token = await issuer.sign(claims())
    await Promise.all(Array.from({ length: 20 }, () => tokens.bearer(token)))
    trust({ audience: ['servo'] })
    await tokens.bearer(token)
    expect(issuer.asked).toBe(1)
  })

  test('are fetched again for a key that is new, at most once a minute', async () => {
    await bearer()
    await issuer.rotate('k2')
    await expect(bearer()).rejects.toMatchObject({ code: 'unauthenticated' })
    await clock.advance(MINUTE_MS)
    expect(await bearer()).toMatchObject({ role: 'admin' })
    for (let i = 0; i < 50; i++) await tokens.bearer(await issuer.sign(claims(), { kid: `guess-${i}` })).catch(() => undefined)
    expect(issuer.asked).toBe(2)
  })

  test('a key that was withdrawn counts no longer than the issuer said', async () => {
    const old = await issuer.sign(claims({ exp: nowSec() + 86_400 }))
    await tokens.bearer(old)
    await issuer.rotate('k2')
    await clock.advance(5 * MINUTE_MS)
    await expect(tokens.bearer(old)).rejects.toMatchObject({ code: 'unauthenticated' })
  })

  test('while the issuer is down, those that were fetched go on for a day, and without any nobody can be let in', async () => {
    issuer.status = 500
    await expect(bearer()).rejects.toMatchObject({ kind: 'unavailable', code: 'keys_unreachable' })
    expect(troubles).toHaveLength(1)
    issuer.status = 200
    await clock.advance(5 * SECOND_MS)
    expect(await bearer()).toMatchObject({ role: 'admin' })
    issuer.status = 500
    await clock.advance(20 * 60 * MINUTE_MS)
    expect(await bearer()).toMatchObject({ role: 'admin' })
    clock.jump(DAY_MS)
    await expect(bearer()).rejects.toMatchObject({ code: 'keys_unreachable' })
  })

  test.each([
    ['of an issuer that goes by another name', { issuer: 'https://other.example' }],
    ['that are not fetched by https', { jwks_uri: 'http://keys.example/keys' }],
    ['that are somewhere else on this machine but not a URL', { jwks_uri: 'file:///keys' }],
  ])('do not count %s', async (_, discovery) => {
    issuer.discovery = discovery
    await expect(bearer()).rejects.toMatchObject({ code: 'keys_unreachable' })
    expect(issuer.asked).toBe(0)
  })
})

test('[U9] whoever was let in is known again until their token ends, or the project changes who may do what', async () => {
  const known = await tokens.bearer(await issuer.sign(claims()))
  const credential = known?.credential
  if (credential?.kind !== 'oidc') throw new Error('not let in')
  expect(tokens.recall(credential)).toEqual({ name: `u-17 (${host()})`, role: 'admin' })
  trust({ roles: { viewer: 'everyone' } })
  expect(() => tokens.recall(credential)).toThrow(/has changed/)
  trust({})
  expect(tokens.recall(credential)).toMatchObject({ role: 'admin' })
  await clock.advance(10 * MINUTE_MS)
  expect(() => tokens.recall(credential)).toThrow(/expired/)
})
