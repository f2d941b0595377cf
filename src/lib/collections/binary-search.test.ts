import fc from 'fast-check'
import { expect, test } from 'vitest'
import { countWhile } from './binary-search.ts'

test('counts up to the first that does not hold, asking few of them', () => {
  const property = fc.property(fc.nat(2 ** 40), fc.nat(2 ** 40), (a, b) => {
    const [first, count] = [Math.min(a, b), Math.max(a, b)]
    let asked = 0
    const found = countWhile(count, (index) => {
      expect(index >= 0 && index < count).toBe(true)
      asked++
      return index < first
    })
    expect(found).toBe(first)
    expect(asked).toBeLessThanOrEqual(41)
  })
  fc.assert(property, {
    examples: [
      [0, 0],
      [0, 1],
      [1, 1],
    ],
  })
})
