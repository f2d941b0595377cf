import { expect, test } from 'vitest'
import { alignRows, fitWidths, tableRows, wrapText } from './columns.ts'

const rows = [
  ['name', 'error'],
  ['inbox', 'x'.repeat(100)],
  ['a', 'short'],
].map((row) => row.map((text) => ({ text })))

test('a table that is wider than the screen has its widest column cut, and nothing else', () => {
  const lines = tableRows(rows, 40)
  expect(lines.map((line) => line.length)).toEqual([12, 40, 12])
  expect(lines[1]).toBe(`inbox  ${'x'.repeat(32)}…`)
  expect(tableRows(rows, Number.POSITIVE_INFINITY)[1]).toBe(`inbox  ${'x'.repeat(100)}`)
})

test('numbers are not cut, and a few letters of each column stay on the narrowest screen', () => {
  const numbered = rows.map((row, i) => [{ text: String(10 ** (i * 8)), right: true }, ...row])
  expect(tableRows(numbered, 10)[1]).toBe(`        100000000  inbox  ${'x'.repeat(11)}…`)
})

test('long text is broken between words', () => {
  expect(wrapText('the disk is almost full', 11)).toEqual(['the disk is', 'almost full'])
  expect(wrapText('/a/very/long/path is full', 8)).toEqual(['/a/very/long/path', 'is full'])
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
