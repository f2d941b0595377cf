import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { sha256Bytes } from '../lib/hash.ts'
import { HOUR_MS, MINUTE_MS, toIso } from '../lib/time.ts'
import { VirtualClock } from '../testing/virtual-clock.ts'
import { type AttemptGrant, type SigningKey, TaskTokens } from './task-tokens.ts'

const key = (id: string): SigningKey => ({ id, secret: sha256Bytes(id) })
const grant: AttemptGrant = {
  tenant_id: 'acme',
  workspace_id: 'prod',
  run_id: 'run_1',
  task_key: 'orders[2025-01-15]',
  attempt: 2,
  attempt_id: 'a_2',
}

describe('a task token', () => {
  test('speaks for the attempt it was made for, until it expires', async () => {
    const clock = new VirtualClock()
    const tokens = new TaskTokens({ keys: [key('k1')], clock })
    const { token, token_expires_at } = tokens.mint(grant)
    expect(token_expires_at).toBe(toIso(clock.now() + HOUR_MS))
    expect(tokens.verify(token)).toEqual({ ok: true, grant: { ...grant, expires_at: clock.now() + HOUR_MS } })
    await clock.advance(HOUR_MS - 1)
    expect(tokens.verify(token).ok).toBe(true)
    await clock.advance(1)
    expect(tokens.verify(token)).toEqual({ ok: false, reason: 'expired' })
  })

  test('does not speak for another attempt', () => {
    const tokens = new TaskTokens({ keys: [key('k1')], clock: new VirtualClock() })
    const { token } = tokens.mint(grant)
    expect(tokens.verify(token, { run_id: 'run_1', attempt_id: 'a_2' }).ok).toBe(true)
    expect(tokens.verify(token, { attempt: 3 })).toEqual({ ok: false, reason: 'wrong_attempt' })
  })

  test('is followed by a new one in the second half of its life, and by none before', async () => {
    const clock = new VirtualClock()
    const tokens = new TaskTokens({ keys: [key('k1')], clock })
    const verified = tokens.verify(tokens.mint(grant).token)
    if (!verified.ok) throw new Error(verified.reason)
    await clock.advance(30 * MINUTE_MS)
    expect(tokens.refresh(verified.grant)).toBeUndefined()
    await clock.advance(1)
    const next = tokens.refresh(verified.grant)
    await clock.advance(HOUR_MS - 1)
    expect(tokens.verify(next?.token ?? '')).toMatchObject({ ok: true, grant })
  })

  test('outlives the rotation of keys, until its own is dropped', () => {
    const clock = new VirtualClock()
    const before = new TaskTokens({ keys: [key('k1')], clock }).mint(grant).token
    const rotated = new TaskTokens({ keys: [key('k2'), key('k1')], clock })
    expect(rotated.verify(before).ok).toBe(true)
    expect(rotated.mint(grant).token).toMatch(/^servo1\.k2\./)
    expect(new TaskTokens({ keys: [key('k2')], clock }).verify(before)).toEqual({ ok: false, reason: 'unknown_key' })
  })

  test('signed with another secret under the same id is a forgery', () => {
    const clock = new VirtualClock()
    const forged = new TaskTokens({ keys: [{ id: 'k1', secret: sha256Bytes('guess') }], clock }).mint(grant).token
    expect(new TaskTokens({ keys: [key('k1')], clock }).verify(forged)).toEqual({ ok: false, reason: 'bad_signature' })
  })

  test.each(['', 'x', 'servo1.k1.e30', 'servo2.k1.e30.x', `servo1.k1.${'a'.repeat(10_000)}.x`, 'servo1.__proto__.e30.x'])(
    'is not %j',
    (text) => {
      expect(new TaskTokens({ keys: [key('k1')], clock: new VirtualClock() }).verify(text).ok).toBe(false)
    },
  )

  test('is made only with a key that is long enough and has a plain name', () => {
    const clock = new VirtualClock()
    expect(() => new TaskTokens({ keys: [{ id: 'k1', secret: new Uint8Array(16) }], clock })).toThrow(/fewer than 32/)
    expect(() => new TaskTokens({ keys: [{ id: 'k.1', secret: sha256Bytes('') }], clock })).toThrow(
      /"k\.1" is not a valid id of a signing key/,
    )
  })

  test('that was altered in any way does not verify', () => {
    const clock = new VirtualClock()
    const tokens = new TaskTokens({ keys: [key('k1'), key('k2')], clock })
    const other = tokens.mint({ ...grant, attempt: 1, attempt_id: 'a_1' }).token.split('.')
    const { token } = tokens.mint(grant)
    const place = fc.nat({ max: token.length - 1 })
    const character = fc.oneof(fc.constantFrom(...'ABCabcxyz019-_.=+/ k2'), fc.string({ minLength: 1, maxLength: 1 }))
    const altered = fc.oneof(
      fc.tuple(place, character).map(([at, by]) => token.slice(0, at) + by + token.slice(at + 1)),
      fc.tuple(place, character).map(([at, by]) => token.slice(0, at) + by + token.slice(at)),
      place.map((at) => token.slice(0, at) + token.slice(at + 1)),
      place.map((at) => token.slice(0, at)),
      fc.tuple(place, place).map(([a, b]) => token.slice(0, a) + token.slice(b)),
      fc.constantFrom(1, 2, 3).map((part) =>
        token
          .split('.')
          .with(part, other[part] as string)
          .join('.'),
      ),
      fc.string().map((more) => token + more),
    )
    const property = fc.property(altered, (text) => {
      fc.pre(text !== token)
      expect(tokens.verify(text).ok).toBe(false)
    })
    fc.assert(property, { numRuns: 2_000 })
  })

  test('whose last character stands for the same bytes is still another text', () => {
    const tokens = new TaskTokens({ keys: [key('k1')], clock: new VirtualClock() })
    const { token } = tokens.mint(grant)
    const digits = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
    const same = [1, 2, 3].map((spare) => token.slice(0, -1) + digits[digits.indexOf(token.at(-1) as string) ^ spare])
    const bytes = (text: string) => Buffer.from(text.split('.')[3] as string, 'base64url').toString('hex')
    expect(new Set(same.map(bytes))).toEqual(new Set([bytes(token)]))
    for (const text of same) expect(tokens.verify(text)).toEqual({ ok: false, reason: 'bad_signature' })
  })
})
