import { stripVTControlCharacters } from 'node:util'
import { expect, test } from 'vitest'
import { alignRows, fitWidths, tableRows, wrapText } from './columns.ts'
import { headsOf } from './output.ts'

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

test('numbers, times and ids are not cut; where no text is left to cut, the last columns are left out', () => {
  const numbered = rows.map((row, i) => [{ text: String(10 ** (i * 8)), right: true }, ...row])
  expect(tableRows(numbered, 34)[1]).toBe(`        100000000  inbox  ${'x'.repeat(7)}…`)
  expect(tableRows(numbered, 33)[1]).toBe('        100000000  inbox')
  expect(tableRows(numbered, 10)[1]).toBe('        100000000')
  const row = ['run_nqii76vpabcd', 'wiped 2025-01-15 10:00:00, by ana', 'z'.repeat(40)].map((text) => ({ text }))
  expect(tableRows([row], 54)).toEqual([`run_nqii76vpabcd  wiped 2025-01-15 10:00:00…  ${'z'.repeat(7)}…`])
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

test('the widest columns are narrowed to fit the screen, none below its floor', () => {
  const floors = [8, 8, 30, 8]
  expect(fitWidths([10, 80, 30, 40], floors, 100)).toEqual([10, 27, 30, 27])
  expect(fitWidths([10, 80, 30, 40], floors, 166)).toEqual([10, 80, 30, 40])
  expect(fitWidths([10, 80, 30, 40], floors, 40)).toEqual([8, 8, 30, 8])
})

const AT = '2026-11-17 10:00:00'
const TABLES = {
  'runs list': {
    heads: headsOf(['run', 'state', 'requested', 'tasks', 'took', 'asked by', 'selection'], ['tasks', 'took']),
    row: ['run_nqii76vp', 'succeeded', AT, '200/200', '1m 12s', 'schedule nightly', 'raw/orders mart/revenue mart/daily'],
    times: 1,
  },
  'schedules list': {
    heads: headsOf([
      ...['schedule', 'status', 'next tick (Europe/Paris)', 'last tick (Europe/Paris)', 'last run (Europe/Paris)'],
      ...['cron', 'selection', 'why'],
    ]),
    row: [
      ...['nightly-orders', 'active', AT, `${AT} SUBMITTED`, `${AT} succeeded, triggered by ana`],
      ...['0 3 * * * Europe/Paris', 'raw/orders mart/revenue', ''],
    ],
    times: 2,
  },
  'partitions status': {
    heads: headsOf(
      ['asset', 'partitions', 'materialized', 'stale', 'failed', 'missing', 'keys', 'because'],
      ['partitions', 'materialized', 'stale', 'failed', 'missing'],
    ),
    row: ['mart/revenue', '1,234', '1,000', '200', '4', '30', '2025-01-01 … 2028-05-18', 'code changed 150, upstream stale 50'],
    times: 0,
  },
}

test.each(Object.entries(TABLES))('servo %s fits 72, 80 and 120 columns, with whole times and numbers', (_, table) => {
  const row = table.row.map((text, i) => ({ text, right: table.heads[i]?.right === true }))
  for (const screen of [72, 80, 120]) {
    const [heads = '', shown = ''] = tableRows([table.heads, row], screen).map(stripVTControlCharacters)
    expect(Math.max(heads.length, shown.length), shown).toBeLessThanOrEqual(screen)
    const columns = shown.split(/ {2,}/)
    expect(columns.slice(0, 2)).toEqual(table.row.slice(0, 2))
    const numbers = row.filter(({ right }) => right).map(({ text }) => text)
    expect(columns).toEqual(expect.arrayContaining(numbers))
    expect(shown.match(/2026-11-17 10:00:00/g)?.length ?? 0, shown).toBeGreaterThanOrEqual(table.times)
    expect(shown).not.toMatch(/2026-11-17( 1[\d:]{0,6})?…/)
  }
  // More room shows more.
  const shownAt = (screen: number) => tableRows([table.heads, row], screen)[1]?.length ?? 0
  expect(shownAt(120)).toBeGreaterThan(shownAt(72))
})
