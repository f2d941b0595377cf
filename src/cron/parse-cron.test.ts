import fs from 'node:fs'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import { parseCron } from './parse-cron.ts'
import { ticksFrom } from './ticks.ts'

const file = path.resolve(import.meta.dirname, '../../../shared/tables/cron_validity.json')
const table: { cron: string; valid: boolean }[] | undefined = fs.existsSync(file)
  ? JSON.parse(fs.readFileSync(file, 'utf8'))
  : undefined
if (table === undefined) console.warn(`${file} is not there: which expressions Dagster accepts is not compared.`)

const isValid = (text: string) => {
  try {
    return Boolean(parseCron(text))
  } catch (error) {
    expect(error).toMatchObject({ kind: 'invalid', code: 'bad_cron', hint: expect.any(String) })
    return false
  }
}

/** The next ticks from the beginning of 2024 on, in UTC, without what all of them share. */
function ticks(text: string, count: number, from = '2024-01-01T00:00:00Z'): string[] {
  const found: string[] = []
  for (const ms of ticksFrom(parseCron(text), 'UTC', Date.parse(from))) {
    found.push(new Date(ms).toISOString().slice(0, 16))
    if (found.length === count) break
  }
  return found
}

test.skipIf(table === undefined)('[shared tables] the expressions that Dagster accepts are accepted, and no others', () => {
  expect(table?.map(({ cron }) => ({ cron, valid: isValid(cron) }))).toEqual(table)
})

describe('a cron expression', () => {
  test.each([
    ['0 0 * * 0', '0 0 * * 7'],
    ['0 0 * * 0', '@weekly'],
    ['0 0 * * SUN', ' 0  0 * * sun '],
    ['0 0 * * 5-7', '0 0 * * FRI-SUN'],
    ['0 0 * * 6,0,1', '0 0 * * SAT-MON'],
    ['0 0 * * 0,1,2', '0 0 * * 7-2'],
    ['0 22,23,0,1 * * *', '0 22-1 * * *'],
    ['0 22,0,2,4 * * *', '0 22-4/2 * * *'],
    ['0 * * * *', '*/90 * * * *'],
    ['5,20,35,50 * * * *', '5/15 * * * *'],
    ['0 0 * 1,11,12 *', '0 0 * NOV-JAN *'],
    ['0 0 1,31 * *', '0 0 */30 * *'],
    ['0 0 1 1 *', '@annually'],
    ['0 0 1 1 *', '@yearly'],
    ['0 0 * * *', '@midnight'],
    ['0 0 * * *', '0 0 ? * ?'],
    ['0 0 * * *', '0 0 13 * 0-6'],
    ['0 0 * * *', '0 0 1-31 * MON'],
    ['0 0 * * *', '0 0 */1 * MON-FRI'],
    ['0 0 13 * *', '0 0 13 * *,1'],
    ['0 0 13 * *', '0 0 13 * ?'],
    ['0 0 * * */2', '0 0 1-31 * */2'],
    ['0 0 */2 * *', '0 0 */2 * 0-6'],
    ['0 0 * * MON#2', '0 0 1-31 * MON#2'],
    ['0 0 * * L5', '0 0 1-31 * L5'],
    ['0 0 15-31 * *', '0 0 15-L * *'],
    ['0 0 1-31/2 * *', '0 0 1-l/2 * *'],
    ['0 0 * * 0/2', '0 0 * * 7/2'],
    ['0 0 * * 1#2,2#2,3#2', '0 0 * * MON-WED#2'],
    ['0 0 * * 6#1,0#1', '0 0 * * sat-sun#1'],
    ['0 * * * *', '*/100000 * * * *'],
    ['0 6 * * *', '0 0 6 * * *'],
    ['0 0 * * L0', '0 0 * * l7'],
    ['0 0 * * 0#2', '0 0 * * 7#2'],
  ])('%j means the same as %j', (one, other) => {
    expect(ticks(one, 50)).toEqual(ticks(other, 50))
  })

  test('with seconds in front ticks within the minute', () => {
    const [a, b] = [...take(ticksFrom(parseCron('15,45 * * * * *'), 'UTC', 0), 2)]
    expect([a, b]).toEqual([15_000, 45_000])
  })

  test('with day of month and weekday ticks when either matches', () => {
    expect(ticks('0 0 13 * FRI', 4, '2024-09-10T00:00:00Z')).toEqual([
      '2024-09-13T00:00',
      '2024-09-20T00:00',
      '2024-09-27T00:00',
      '2024-10-04T00:00',
    ])
    expect(ticks('0 0 15 * MON#1', 3)).toEqual(['2024-01-01T00:00', '2024-01-15T00:00', '2024-02-05T00:00'])
  })

  test('counts weekdays in their month, from its end too', () => {
    expect(ticks('0 0 * * MON#2', 2)).toEqual(['2024-01-08T00:00', '2024-02-12T00:00'])
    expect(ticks('0 0 * * L5', 2)).toEqual(['2024-01-26T00:00', '2024-02-23T00:00'])
    expect(ticks('0 0 15,L * *', 4)).toEqual(['2024-01-15T00:00', '2024-01-31T00:00', '2024-02-15T00:00', '2024-02-29T00:00'])
  })

  test('finds 29 February on a Monday, decades away, at once', () => {
    expect(ticks('0 0 * 2 MON#5', 3, '2025-01-01T00:00:00Z')).toEqual([
      '2044-02-29T00:00',
      '2072-02-29T00:00',
      '2112-02-29T00:00',
    ])
  })

  test.each([
    '',
    ' ',
    '* * * *',
    '* * * * * * *',
    '@reboot',
    '@constructor',
    '0 0 31 4 *',
    '0 0 30,31 2 *',
    '0 0 31 2,4,6,9,11 *',
    '0 0 30 2 MON',
    '0 0 31 4 1-5',
    '0 24 * * *',
    '-1 * * * *',
    '1- * * * *',
    '1-2-3 * * * *',
    '*/ * * * *',
    '*/-1 * * * *',
    '*/1/2 * * * *',
    ', * * * *',
    '1, * * * *',
    '1.5 * * * *',
    '? * * * *',
    'L * * * *',
    '0 0 L-3 * *',
    '0 0 L/2 * *',
    '0 15-L * * *',
    '0 0 ?,5 * *',
    '0 0 ?/2 * *',
    '0 0 * * MON-FRI#6',
    '0 0 * * */2#1',
    '0 0 * * L',
    '0 0 * * 5L',
    '0 0 * * FRIL',
    '0 0 * * L8',
    '0 0 * * MON#6',
    '0 0 * * MON#0',
    '0 0 * * MON#1#2',
    '0 0 * * MO',
    '0 0 * JANUARY *',
    '0 0 MON * *',
    '0 0 * MON *',
    '60 0 0 * * *',
    '٣ * * * *',
    `${'1,'.repeat(5000)}1 * * * *`,
  ])('cannot be %j', (text) => {
    expect(isValid(text)).toBe(false)
  })

  test.each(['0 0 29 2 MON', '0 0 29 2 *', '0 0 L 2 MON', '0 0 L 2 *', '0 0 31 4,5 *'])(
    'can be %j, which has a day now and then',
    (text) => {
      expect(isValid(text)).toBe(true)
    },
  )

  test('that cannot be read says which field is wrong and what to write there', () => {
    expect(() => parseCron('0 25 * * *')).toThrow(
      expect.objectContaining({
        message: 'invalid cron expression "0 25 * * *": hour 25 is out of range (0–23)',
        hint: 'As hour write *, 6, 9-17, 22-4 or */2.',
        facts: { field: 'hour', cron: '0 25 * * *' },
      }),
    )
  })
})

function* take<T>(items: Iterable<T>, count: number): Generator<T> {
  let left = count
  for (const item of items) {
    if (left-- <= 0) return
    yield item
  }
}
