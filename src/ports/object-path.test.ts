import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isServoError } from '../lib/error.ts'
import { checkListing, checkPath, checkRange, isPathPart } from './object-path.ts'

function refusal(check: () => void): { message: string; hint: string; facts: Record<string, unknown> } | undefined {
  try {
    check()
    return undefined
  } catch (error) {
    if (!isServoError(error, 'invalid') || error.hint === undefined) throw error
    return { message: error.message, hint: error.hint, facts: error.facts }
  }
}

describe('a path in an object store', () => {
  it('is accepted exactly when each of its segments is one, whatever the text', () => {
    const texts = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.stringMatching(/^[A-Za-z0-9._=/-]{0,40}$/),
      fc.array(fc.constantFrom('a', '.', '..', '', 'b.c', '\0', '\\'), { maxLength: 5 }).map((segments) => segments.join('/')),
    )
    fc.assert(
      fc.property(texts, (text) => {
        const fits =
          text.length <= 1024 &&
          text.split('/').every((segment) => /^[\w.=-]{1,200}$/.test(segment) && !segment.startsWith('.'))
        expect(refusal(() => checkPath(text)) === undefined).toBe(fits)
        expect(refusal(() => checkListing(`${text}/`, undefined)) === undefined).toBe(fits)
        if (!text.includes('/')) expect(isPathPart(text)).toBe(fits)
      }),
      { numRuns: 500 },
    )
  })

  it('is shown short and harmless when it is refused', () => {
    const error = refusal(() => checkPath(`\u001b[31mred\0\u009b\u2028\u202e"\n${'x'.repeat(5_000)}`))!
    expect(error.message).toMatch(/^[\x20-\x7e]+$/)
    expect(error.message.length).toBeLessThan(250)
    expect(error.message).toContain('\\u001b[31mred\\u0000\\u009b\\u2028\\u202e\\"\\n')
    expect(error.message).toContain('characters)')
    expect(JSON.stringify(error.facts).length).toBeLessThan(300)
  })

  it('is text: anything else is refused by what it is', () => {
    for (const value of [undefined, null, 7, {}, ['a']] as unknown as string[]) {
      expect(refusal(() => checkPath(value))?.message).toMatch(/a value of type (undefined|object|number)/)
      expect(refusal(() => checkListing(value, undefined))).toBeDefined()
    }
  })

  it('says in the error what would be right', () => {
    expect(refusal(() => checkPath('a/../b'))).toMatchObject({
      message: '"a/../b" cannot be a path in an object store',
      hint: expect.stringContaining('does not start with a dot'),
      facts: { path: '"a/../b"' },
    })
    expect(refusal(() => checkListing('a', undefined))?.hint).toContain('ends in "/"')
    expect(refusal(() => checkListing('', 'a b'))?.message).toBe('"a b" cannot be a position in an object store')
    expect(refusal(() => checkRange('a', -1, 5))?.message).toBe('cannot read 5 bytes from -1 of a')
  })
})
