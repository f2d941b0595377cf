import { expect, test } from 'vitest'
import { findMisfit } from './not-json.ts'

class Money {
  readonly cents = 1
}
const circle: Record<string, unknown> = {}
circle['self'] = circle
let deep: unknown = 1
for (let i = 0; i < 100; i++) deep = [deep]

test.each([
  [{ rows: [{}, {}, {}, { at: new Date(0) }] }, 'value.rows[3].at', 'a Date', 'Return value.rows[3].at.toISOString()'],
  [new Map(), 'value', 'a Map', 'Return Object.fromEntries(value)'],
  [{ 'odd name': new Set() }, 'value["odd name"]', 'a Set', 'Return [...value["odd name"]]'],
  [[1, 2n], 'value[1]', 'a bigint', 'Return String(value[1]), or Number(value[1]) if it is small enough'],
  [{ n: Number.NaN }, 'value.n', 'the number NaN', 'Return null, or a number that is finite'],
  [[1, undefined], 'value[1]', 'undefined', 'Return null'],
  [Array(2), 'value[0]', 'undefined', 'Return null'],
  [{ price: new Money() }, 'value.price', 'an instance of Money', 'Return a plain object: { ...value.price }'],
  [{ f: () => 1 }, 'value.f', 'a function', 'Return the data instead'],
  [new Uint8Array(1), 'value', 'bytes', 'Return text: base64, for example'],
  [circle, 'value.self', 'an object that contains itself', 'Return an id in its place'],
  ['\ud800', 'value', 'text with half a surrogate pair', 'Return value.toWellFormed()'],
  [JSON.parse('{"__proto__":1}'), 'value["__proto__"]', 'a key that JSON must not have', 'Rename it'],
])('%o: the place, what is there, and what to return instead', (value, path, what, instead) => {
  expect(findMisfit(value)).toEqual({ path, what, instead })
})

test('what JSON holds has no misfit, and a member that is undefined is left out', () => {
  const shared = { n: 1 }
  expect(
    findMisfit({ a: [1, 'x', null, true, { b: undefined }], shared, again: shared, none: Object.create(null) }),
  ).toBeUndefined()
  expect(findMisfit(deep)?.what).toBe('deeper than 64 levels')
})
