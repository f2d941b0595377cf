import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { difference, intersection, meet, packSpans, slice, spans, union, unpackSpans } from './spans.ts'

const anySpans = fc.array(fc.record({ from: fc.integer({ min: 0, max: 40 }), to: fc.integer({ min: 0, max: 40 }) }), {
  maxLength: 6,
})

const members = (list: readonly { from: number; to: number }[]): number[] => {
  const all = Array.from({ length: 41 }, (_, position) => position)
  return all.filter((position) => list.some(({ from, to }) => from <= position && position <= to))
}

describe('spans of positions', () => {
  test('are as many as they cover, in order, however they were given', () => {
    fc.assert(
      fc.property(anySpans, (list) => {
        const expected = members(list)
        const made = spans(list)
        expect(made.count).toBe(expected.length)
        expect(expected.map((_, index) => made.at(index))).toEqual(expected)
        expect(members([{ from: 0, to: 40 }]).filter(made.has)).toEqual(expected)
        expect(() => made.at(made.count)).toThrow(RangeError)
      }),
    )
  })

  test('are joined and crossed as the sets they are', () => {
    fc.assert(
      fc.property(anySpans, anySpans, (a, b) => {
        expect(members(union([spans(a), spans(b)]).list)).toEqual(members([...a, ...b]))
        expect(members(intersection(spans(a), spans(b)).list)).toEqual(members(a).filter(spans(b).has))
      }),
    )
  })

  test('are subtracted, met, cut and written down as the sets they are', () => {
    const place = fc.integer({ min: 0, max: 45 })
    fc.assert(
      fc.property(anySpans, anySpans, place, place, (a, b, from, to) => {
        const [left, right] = [spans(a), spans(b)]
        const both = members(a).filter(right.has)
        expect(members(difference(left, right).list)).toEqual(members(a).filter((position) => !right.has(position)))
        expect(meet(left, right)).toBe(both.length > 0)
        expect(members(slice(left, from, to).list)).toEqual(members(a).slice(from, to))
        expect(unpackSpans(packSpans(left)).list).toEqual(left.list)
      }),
    )
  })

  test('of neighbours are one', () => {
    expect(
      spans([
        { from: 3, to: 3 },
        { from: 1, to: 2 },
        { from: 9, to: 4 },
      ]).list,
    ).toEqual([{ from: 1, to: 3 }])
  })
})
