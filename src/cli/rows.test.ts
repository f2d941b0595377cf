import { expect, test } from 'vitest'
import { firstTogether, shownTable } from './rows.ts'

const columns = [
  { name: 'city', type: 'VARCHAR' },
  { name: 'n', type: 'BIGINT' },
  { name: 'about', type: 'JSON' },
]
const linesOf = (text: string) => text.split('\n').slice(0, -1)

test('numbers stand to the right, under their name, and nulls and wide characters keep the columns', () => {
  const show = shownTable(columns, Number.POSITIVE_INFINITY)
  const lines = linesOf(
    show([
      ['東京', 1400, { a: 1 }],
      [null, null, null],
      ['Rome', 28, 'x\ty'],
    ]),
  )
  expect(lines).toEqual([
    'city     n  about',
    '────  ────  ───────',
    '東京  1400  {"a":1}',
    'null  null  null',
    'Rome    28  x\\ty',
  ])
  // Its rows are wider, and under each other.
  expect(
    linesOf(
      show([
        ['Barcelona', 1, ''],
        ['a', 1_000_000, ''],
      ]),
    ),
  ).toEqual(['Barcelona        1', 'a          1000000'])
})

test('a line fits the screen: text is cut, a number never is', () => {
  const lines = linesOf(shownTable(columns, 40)([['東京'.repeat(20), 123_456_789, 'y'.repeat(90)]]))
  expect(lines[2]).toBe(`${'東京'.repeat(3)}…  123456789  ${'y'.repeat(12)}…`)
  expect(lines[1]).toBe(`${'─'.repeat(13)}  ${'─'.repeat(9)}  ${'─'.repeat(13)}`)
})

test('an id and a time are never cut, however narrow the screen is', () => {
  const ids = [
    'run_66z47jzb6xvhn222v3uqje2qp6',
    'mat_01M7P56TB7CYWWNAJW2FK8YS2X',
    '2026-11-18T01:44:11.898Z',
    '6f1f9b0e-4c1d-4d4e-9d6f-0a3c5b7d9e1f',
  ]
  const texts = [...ids, 'a text that is as long as an id']
  const show = shownTable([...texts.map((_, i) => ({ name: `c${i}`, type: 'VARCHAR' }))], 60)
  const [, , row] = linesOf(show([texts]))
  expect(row).toBe(`${ids.join('  ')}  a text …`)
})

test('a few rows that come in several batches stand under each other', async () => {
  async function* batches() {
    yield [['FAILED', 1, '']]
    yield [['SUCCEEDED', 300, '']]
  }
  const show = shownTable(columns, Number.POSITIVE_INFINITY)
  let text = ''
  for await (const batch of firstTogether(batches())) text += show(batch)
  expect(linesOf(text)).toEqual(['city         n  about', '─────────  ───  ─────', 'FAILED       1', 'SUCCEEDED  300'])
})

test('a long answer is shown before its last row is there', async () => {
  let given = 0
  async function* batches() {
    for (; given < 10; given++) yield Array.from({ length: 1_000 }, () => ['a', given, ''])
  }
  const sizes: number[] = []
  for await (const batch of firstTogether(batches())) {
    if (sizes.length === 0) expect(given).toBe(2)
    sizes.push(batch.length)
  }
  expect(sizes).toEqual([3_000, ...Array.from({ length: 7 }, () => 1_000)])
})
