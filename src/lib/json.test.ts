import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { canonicalJson } from './json.ts'

/** The same by the book: members in order at every depth, and JSON as the language writes it. */
function byTheBook(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(byTheBook).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${members.map(([key, member]) => `${JSON.stringify(key)}:${byTheBook(member)}`).join(',')}}`
}

// Few names, so that many objects have the same first one, the same number of them, or both, in one order or another.
const name = fc
  .oneof(fc.constantFrom('a', 'b', 'c', 'd', '1', '10', '9'), fc.string({ maxLength: 3 }))
  .filter((text) => text !== '__proto__')
const { value } = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: 'small' },
    fc.string(),
    fc.integer(),
    fc.double({ noDefaultInfinity: true, noNaN: true }),
    fc.boolean(),
    fc.constant(null),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.array(fc.tuple(name, tie('value')), { maxLength: 6 }).map((members) => Object.fromEntries(members)),
  ),
}))

describe('canonical JSON', () => {
  test('has sorted members at every depth, whatever was written before', () => {
    fc.assert(
      fc.property(value, (any) => {
        expect(canonicalJson(any)).toBe(byTheBook(any))
      }),
      { numRuns: 2_000 },
    )
  })

  test('does not take one object for another that begins alike and has as many members', () => {
    const objects = [
      { b: 1, a: 2, c: 3 },
      { b: 1, c: 2, a: 3 },
      { b: 1, d: 2, a: 3 },
      { b: 1, a: undefined, c: 3 },
    ]
    const texts = ['{"a":2,"b":1,"c":3}', '{"a":3,"b":1,"c":2}', '{"a":3,"b":1,"d":2}', '{"b":1,"c":3}']
    for (let round = 0; round < 2; round++) expect(objects.map(canonicalJson)).toEqual(texts)
  })

  test('refuses what is not JSON, and says what it is', () => {
    for (const bad of [Number.NaN, Number.POSITIVE_INFINITY, () => 1, 1n, new Date(0), '\ud800', { a: ['\udfff'] }])
      expect(() => canonicalJson(bad)).toThrow(/cannot be written as JSON/)
    expect(() => canonicalJson(JSON.parse('{"__proto__":1,"a":2}'))).toThrow(/__proto__/)
    let deep: unknown = 1
    for (let i = 0; i < 65; i++) deep = [deep]
    expect(() => canonicalJson(deep)).toThrow(/nested deeper/)
  })
})
