import { expect, test } from 'vitest'
import { alignRows, cutLast, fitWidths } from './columns.ts'

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

test('columns stay under each other where characters take two places or none', () => {
  const lines = alignRows(
    [
      ['日本', 'x'],
      ['é́', 'y'],
      ['abcde', 'z'],
    ].map((row) => row.map((text) => ({ text }))),
  )
  expect(lines).toEqual(['日本   x', 'é́      y', 'abcde  z'])
})

test('the widest columns of text are narrowed to fit the screen, those of numbers are not', () => {
  const text = [false, false, true, false]
  expect(fitWidths([10, 80, 30, 40], text, 100)).toEqual([10, 27, 30, 27])
  expect(fitWidths([10, 80, 30, 40], text, 166)).toEqual([10, 80, 30, 40])
  expect(fitWidths([10, 80, 30, 40], text, 40)).toEqual([10, 12, 30, 12])
})
