import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { packDeltas } from '../../parquet/file-writer.ts'
import { unpackDeltas } from './delta-packed.ts'

const seed = Number(process.env['SEED'] ?? Date.now())

function packed(values: readonly number[]): Uint8Array {
  const bytes = packDeltas(values.map(BigInt))
  // Pages do not begin where numbers of 32 bits would.
  const page = new Uint8Array(bytes.length + 1)
  page.set(bytes, 1)
  return page.subarray(1)
}

const readBack = (values: readonly number[]): number[] => [
  ...unpackDeltas(packed(values), new Float64Array(values.length).fill(Number.NaN)),
]

describe('numbers packed as differences', () => {
  test(`are read as they were written, however far apart they are (seed ${seed})`, () => {
    const start = fc.oneof(fc.integer({ min: 0, max: 4e12 }), fc.maxSafeInteger())
    const step = fc.nat({ max: 40 }).chain((bits) => fc.integer({ min: -(2 ** bits), max: 2 ** bits }))
    const steps = fc.array(fc.oneof(step, fc.constant(10)), { maxLength: 400 })
    fc.assert(
      fc.property(start, steps, (first, rest) => {
        const values = [first]
        for (const each of rest) {
          const next = (values.at(-1) as number) + each
          values.push(Number.isSafeInteger(next) ? next : 0)
        }
        expect(readBack(values)).toEqual(values)
      }),
      { seed },
    )
  })

  test('are read in differences of every width, in blocks that are full and not', () => {
    for (let bits = 0; bits <= 53; bits++) {
      for (const count of [1, 2, 32, 33, 128, 129, 130, 300]) {
        const values = Array.from({ length: count }, (_, i) => (i % 3 === 0 ? 0 : i % 3 === 1 ? 2 ** bits - 1 : i))
        expect(readBack(values)).toEqual(values)
      }
    }
  })

  test('are none where there are none, and refused where there are fewer than rows', () => {
    expect(readBack([])).toEqual([])
    expect(() => unpackDeltas(packed([1, 2, 3]), new Float64Array(4))).toThrow(/not 4 values/)
  })

  test('are exact at both ends of what a number can hold', () => {
    const ends = [Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER, 0, -1, Number.MIN_SAFE_INTEGER, 5]
    expect(readBack(ends)).toEqual(ends)
  })
})
