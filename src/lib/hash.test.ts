import { createHash, createHmac } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { hmacSha256, Sha256 } from './hash.ts'

test('a keyed hash is the one of every other program, for secrets and data of any length, one after the other', () => {
  const secret = fc.oneof(fc.string({ maxLength: 200, unit: 'binary' }), fc.uint8Array({ maxLength: 200 }))
  const long = fc.integer({ min: 300, max: 400 }).map((length) => '€'.repeat(length))
  const data = fc.oneof(fc.string({ unit: 'binary' }), long)
  fc.assert(
    fc.property(fc.array(secret, { minLength: 1, maxLength: 3 }), data, (secrets, data) => {
      for (const key of [...secrets, ...secrets]) {
        const expected = createHmac('sha256', key).update(data).digest('hex')
        expect(Buffer.from(hmacSha256(key, data)).toString('hex')).toBe(expected)
      }
    }),
  )
})

test('a secret whose bytes change is another secret', () => {
  const secret = new Uint8Array(32).fill(1)
  const before = hmacSha256(secret, 'data')
  secret[0] = 2
  expect(Buffer.compare(before, hmacSha256(secret, 'data'))).not.toBe(0)
})

test('text that comes in pieces has the hash of the whole, short or long', () => {
  const piece = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.integer({ min: 1, max: 70_000 }).map((length) => 'ü'.repeat(length)),
  )
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 5 }), (pieces) => {
      const hash = new Sha256()
      for (const each of pieces) hash.update(each)
      expect(Buffer.from(hash.digest()).toString('hex')).toBe(createHash('sha256').update(pieces.join('')).digest('hex'))
    }),
  )
})
