import { expect, test } from 'vitest'
import { isPackedSet, packSet, unpackSet } from './packed-set.ts'
import { points, spans } from './spans.ts'

const COUNT = 1_000_000
const chosen = (is: (position: number) => boolean) => points(Array.from({ length: COUNT }, (_, i) => i).filter(is))

test('a set of a few spans is numbers that people can read', () => {
  expect(packSet(spans([{ from: 3, to: 5 }]))).toEqual([3, 3])
})

test.each([
  ['every other one', chosen((i) => i % 2 === 1), 10_000],
  ['one in three, by chance', chosen(() => Math.random() < 1 / 3), 400_000],
  ['one in two, by chance', chosen(() => Math.random() < 1 / 2), 400_000],
  ['one in a thousand, by chance', chosen(() => Math.random() < 1 / 1_000), 20_000],
])('[A88] of a million positions, %s fit into an event and are read as they were', (_, set, most) => {
  const packed = packSet(set)
  expect(typeof packed).toBe('string')
  expect(packed.length).toBeLessThan(most)
  expect(isPackedSet(String(packed))).toBe(true)
  expect(JSON.stringify(unpackSet(packed).list) === JSON.stringify(set.list)).toBe(true)
})

test('positions beyond 32 bits are read as they were', () => {
  const far = points(Array.from({ length: 600 }, (_, i) => 2 ** 40 + i * 3))
  expect(unpackSet(packSet(far)).list).toEqual(far.list)
})

test.each(['', 'nonsense', '////', 'AAAA'])('a text that is no set is none: %j', (text) => {
  expect(isPackedSet(text)).toBe(false)
})
