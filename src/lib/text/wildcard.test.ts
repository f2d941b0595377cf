import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { wildcard } from './wildcard.ts'

describe('a wildcard', () => {
  test.each([
    ['abc', 'abc', true],
    ['abc', 'abcd', false],
    ['', '', true],
    ['*', '', true],
    ['a*', 'a', true],
    ['*a', 'ba', true],
    ['a*a', 'a', false],
    ['a*b*c', 'a.b.c', true],
    ['a*b*c', 'acb', false],
    ['**', 'anything', true],
    ['a.c', 'abc', false],
    ['2025-01-*', '2025-01-31', true],
  ])('%j matches %j: %j', (pattern, text, expected) => {
    expect(wildcard(pattern)(text)).toBe(expected)
  })

  test('matches what it would match if every way of placing its parts were tried', () => {
    const tried = (pattern: string, text: string): boolean => {
      if (pattern === '') return text === ''
      if (pattern[0] !== '*') return text !== '' && pattern[0] === text[0] && tried(pattern.slice(1), text.slice(1))
      return tried(pattern.slice(1), text) || (text !== '' && tried(pattern, text.slice(1)))
    }
    const letters = (of: string[]) => fc.string({ unit: fc.constantFrom(...of), maxLength: 8 })
    const property = fc.property(letters(['a', 'b', '*']), letters(['a', 'b']), (pattern, text) => {
      expect(wildcard(pattern)(text)).toBe(tried(pattern, text))
    })
    fc.assert(property, { numRuns: 1_000 })
  })

  test('with many stars is no harder than one with few', () => {
    expect(wildcard(`${'*a'.repeat(200)}*b`)('a'.repeat(10_000))).toBe(false)
  })
})
