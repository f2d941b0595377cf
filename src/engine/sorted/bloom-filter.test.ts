import fc from 'fast-check'
import { expect, test } from 'vitest'
import { bloomHashOfInteger, bloomHashOfText } from '../../parquet/inside-hyparquet.ts'
import { bloomOf, mayContain, xxh64 } from './bloom-filter.ts'

test('the hash is that of every other Parquet reader, for text of any length and for numbers', () => {
  const text = fc.string({ unit: 'binary', minLength: 0, maxLength: 100, size: 'max' })
  fc.assert(
    fc.property(text, (value) => {
      expect(xxh64(value)).toBe(bloomHashOfText(value))
    }),
    { numRuns: 500 },
  )
  fc.assert(
    fc.property(fc.integer(), (value) => {
      expect(xxh64(value)).toBe(bloomHashOfInteger(value))
    }),
  )
})

test('a filter contains every value that was added, and about one in a hundred of the others', () => {
  const inside = Array.from({ length: 5000 }, (_, i) => `key-${i}`)
  const filter = bloomOf(inside)
  expect(inside.every((key) => mayContain(filter, key))).toBe(true)
  const letThrough = Array.from({ length: 20_000 }, (_, i) => `other-${i}`).filter((key) => mayContain(filter, key)).length
  expect(letThrough / 20_000).toBeLessThan(0.03)
  expect(filter.byteLength).toBeLessThan(6_200)
})

test('repeated values do not make a filter larger', () => {
  const repeated = Array.from({ length: 5000 }, (_, i) => i % 3)
  expect(bloomOf(repeated).byteLength).toBe(32)
})
