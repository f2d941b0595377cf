import { expect, test } from 'vitest'
import { alignRows, cutLast } from './columns.ts'

const rows = [
  ['name', 'error'],
  ['inbox', 'x'.repeat(100)],
  ['a', 'short'],
].map((row) => row.map((text) => ({ text })))

test('a last column that is wider than the screen is cut, and nothing else', () => {
  const lines = alignRows(cutLast(rows, 40))
  expect(lines.map((line) => line.length)).toEqual([12, 40, 12])
  expect(lines[1]).toBe(`inbox  ${'x'.repeat(32)}…`)
})

test('a few words of it stay on the narrowest screen', () => {
  expect(alignRows(cutLast(rows, 10))[1]).toBe(`inbox  ${'x'.repeat(19)}…`)
})
