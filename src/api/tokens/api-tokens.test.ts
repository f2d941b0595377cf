import { describe, expect, test } from 'vitest'
import { memoryStore } from '../../adapters/memory/object-store.ts'
import { sha256 } from '../../lib/hash.ts'
import { DAY_MS, SECOND_MS } from '../../lib/time.ts'
import type { ObjectStore } from '../../ports/object-store.ts'
import { seededBytes } from '../../testing/seeded-bytes.ts'
import { VirtualClock } from '../../testing/virtual-clock.ts'
import { ApiTokens } from './api-tokens.ts'

const scope = { tenant_id: 'acme', workspace_id: 'analytics' }
const START = Date.UTC(2026, 0, 1)

/** Two processes over one store. */
function open(given: ObjectStore = memoryStore()) {
  const listings: string[] = []
  const store: ObjectStore = {
    ...given,
    list: (prefix, options) => {
      listings.push(prefix)
      return given.list(prefix, options)
    },
  }
  const clock = new VirtualClock(START)
  const process = (seed: number) => new ApiTokens({ store, scope, clock, random: seededBytes(seed) })
  return { store, clock, listings, here: process(1), elsewhere: process(2) }
}

async function filesOf(store: ObjectStore): Promise<string[]> {
  const texts: string[] = []
  for await (const { path } of store.list('')) texts.push(Buffer.from((await store.get(path)) ?? []).toString())
  return texts
}

describe('a token', () => {
  test('[U3] is kept as the hash of 256 random bits, which are told once', async () => {
    const { here, store } = open()
    const { token, ...about } = await here.create({ name: 'ci', role: 'operator' }, 'ana')
    const [, secret = ''] = /^servo_[a-z2-7]{16}_([A-Za-z0-9_-]{43})$/.exec(token) ?? []
    expect(Buffer.from(secret, 'base64url')).toHaveLength(32)
    expect(about).toMatchObject({ name: 'ci', role: 'operator', created_by: 'ana', created_at: '2026-01-01T00:00:00.000Z' })
    const [file = '', ...others] = await filesOf(store)
    expect(others).toEqual([])
    expect(file).toContain(sha256(secret))
    expect(file).not.toContain(secret)
    expect(JSON.stringify(await here.list())).not.toMatch(new RegExp(`${secret}|${sha256(secret)}`))
  })

  test('[U5] speaks for its name and id', async () => {
    const { here } = open()
    const { token, token_id } = await here.create({ name: 'ci', role: 'worker' }, 'ana')
    expect(await here.bearer(token)).toMatchObject({ name: `ci (${token_id})`, role: 'worker' })
  })

  test.each([
    ['no token at all', () => 'x'],
    ['another secret', (token: string) => `${token.slice(0, -43)}${'A'.repeat(43)}`],
    ['one character less', (token: string) => token.slice(0, -1)],
    ['one character more', (token: string) => `${token}A`],
    ['another id', (token: string) => token.replace(/_[a-z2-7]{16}_/, '_aaaaaaaaaaaaaaaa_')],
    ['a path for an id', (token: string) => token.replace(/_[a-z2-7]{16}_/, '_../../../secrets_')],
    ['a hash instead of the secret', (token: string) => `${token.slice(0, -43)}${sha256(token).slice(0, 43)}`],
  ])('[U3] with %s is unknown', async (_, altered) => {
    const { here, clock } = open()
    const { token } = await here.create({ name: 'ci', role: 'admin' }, 'ana')
    await here.bearer(token)
    const asked = here.bearer(altered(token))
    await Promise.all([expect(asked).rejects.toMatchObject({ code: 'unauthenticated' }), clock.advance(SECOND_MS)])
  })

  test('[U4] counts until it expires, by default for 90 days', async () => {
    const { here, clock } = open()
    const { token, expires_at } = await here.create({ name: 'ci', role: 'viewer' }, 'ana')
    const { token: forever } = await here.create({ name: 'forever', role: 'viewer', expires_at: null }, 'ana')
    expect(expires_at).toBe('2026-04-01T00:00:00.000Z')
    await clock.advance(90 * DAY_MS - 1)
    expect(await here.bearer(token)).toMatchObject({ role: 'viewer' })
    await clock.advance(1)
    await expect(here.bearer(token)).rejects.toMatchObject({ code: 'token_expired' })
    expect(await here.bearer(forever)).toMatchObject({ role: 'viewer' })
    expect((await here.list()).map(({ status }) => status).sort()).toEqual(['active', 'expired'])
    const past = here.create({ name: 'x', role: 'viewer', expires_at: '2026-01-01T00:00:00.000Z' }, 'ana')
    await expect(past).rejects.toMatchObject({ code: 'bad_body' })
  })

  test('[U4] that another process revokes does not count a second later, and the first revocation stays', async () => {
    const { here, elsewhere, clock } = open()
    const { token, token_id } = await here.create({ name: 'ci', role: 'admin' }, 'ana')
    await elsewhere.bearer(token)
    const revoked = await here.revoke(token_id, 'ben')
    await clock.advance(500)
    await expect(elsewhere.bearer(token)).rejects.toMatchObject({ code: 'token_revoked' })
    expect(await elsewhere.revoke(token_id, 'eve')).toEqual(revoked)
    expect(await elsewhere.list()).toMatchObject([{ status: 'revoked', revoked_by: 'ben' }])
    await expect(here.revoke('tok_aaaaaaaaaaaaaaaa', 'ana')).rejects.toMatchObject({ code: 'no_such_token' })
    await expect(here.revoke('../../x', 'ana')).rejects.toMatchObject({ code: 'no_such_token' })
  })

  test('[U4] that another process made counts at once, although others were looked up just before', async () => {
    const { here, elsewhere, clock } = open()
    await here.bearer((await here.create({ name: 'old', role: 'viewer' }, 'ana')).token)
    const { token } = await elsewhere.create({ name: 'new', role: 'viewer' }, 'ana')
    const asked = here.bearer(token)
    const [caller] = await Promise.all([asked, clock.advance(250)])
    expect(caller.name).toMatch(/^new /)
  })

  test('[U4] of another workspace is unknown, also if its file is copied', async () => {
    const { store, here, clock } = open()
    const other = { tenant_id: 'evil', workspace_id: 'analytics' }
    const { token, token_id } = await new ApiTokens({ store, scope: other, clock, random: seededBytes(3) }).create(
      { name: 'mine', role: 'admin' },
      'eve',
    )
    await expect(here.bearer(token)).rejects.toMatchObject({ code: 'unauthenticated' })
    const bytes = await store.get(`tenant=evil/workspace=analytics/tokens/${token_id}.json`)
    await store.create(`tenant=acme/workspace=analytics/tokens/${token_id}.json`, bytes ?? new Uint8Array())
    await clock.advance(SECOND_MS)
    await expect(here.bearer(token)).rejects.toMatchObject({ code: 'unauthenticated' })
  })

  test('whose file is damaged does not count, and can be revoked', async () => {
    const { here, elsewhere, store } = open()
    const { token, token_id } = await here.create({ name: 'ci', role: 'viewer' }, 'ana')
    const path = `tenant=acme/workspace=analytics/tokens/${token_id}.json`
    const text = Buffer.from((await store.get(path)) ?? []).toString()
    await store.put(path, Buffer.from(text.replace('"viewer"', '"admin"')))
    await expect(elsewhere.bearer(token)).rejects.toMatchObject({ kind: 'corrupt', code: 'bad_token_file' })
    expect(await elsewhere.revoke(token_id, 'ana')).toMatchObject({ token_id })
  })
})

describe('looking tokens up', () => {
  test('asks the store at most four times a second, whatever is tried, and not at all when nothing is', async () => {
    const { here, clock, listings } = open()
    const { token } = await here.create({ name: 'ci', role: 'viewer' }, 'ana')
    let refused = 0
    for (let i = 0; i < 100; i++) {
      const unknown = token.replace(
        /_[a-z2-7]{16}_/,
        `_${String(i)
          .replace(/\D/g, '')
          .padStart(16, 'a')
          .replace(/[0189]/g, 'b')}_`,
      )
      void here.bearer(unknown).catch(() => refused++)
      void here.bearer(token)
      await clock.advance(10)
    }
    await clock.advance(SECOND_MS)
    expect(refused).toBe(100)
    expect(listings.length).toBeLessThanOrEqual(6)
    const before = listings.length
    await clock.advance(DAY_MS)
    expect(listings).toHaveLength(before)
  })

  test('[U4] lets nobody in while the store does not answer, and goes on when it does', async () => {
    const memory = memoryStore()
    let isDown = false
    const { here, clock } = open({
      ...memory,
      list: (...asked) => {
        if (isDown) throw Object.assign(new Error('down'), { kind: 'unavailable' })
        return memory.list(...asked)
      },
    })
    const { token } = await here.create({ name: 'ci', role: 'viewer' }, 'ana')
    await here.bearer(token)
    isDown = true
    await clock.advance(SECOND_MS)
    await expect(here.bearer(token)).rejects.toThrow('down')
    isDown = false
    expect(await here.bearer(token)).toMatchObject({ role: 'viewer' })
  })
})
