import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Ran, servo } from '../support/servo.ts'

let nowhere = ''
beforeAll(() => {
  nowhere = fs.mkdtempSync(path.join(os.tmpdir(), 'servo-nowhere-'))
})
afterAll(() => {
  // Neither command needs a project, and neither leaves anything.
  expect(fs.readdirSync(nowhere)).toEqual([])
  fs.rmSync(nowhere, { recursive: true })
})

const cron = async (...args: string[]): Promise<Ran> => await servo(['cron', ...args], { cwd: nowhere })
const BERLIN = ['--timezone', 'Europe/Berlin']

describe('servo cron next', () => {
  test('prints the next ticks in the zone, and says where clocks are changed', async () => {
    const args = ['30 2 * * *', ...BERLIN, '--from', '2027-03-26T12:00:00Z', '--count', '3']
    expect(await cron('next', ...args)).toEqual({
      code: 0,
      stdout: `Sat 2027-03-27 02:30 +01:00  in 13 h 30 min
Sun 2027-03-28 03:00 +02:00  in 1 d 13 h     clocks go forward at 02:00; 02:30 runs at 03:00
Mon 2027-03-29 02:30 +02:00  in 2 d 12 h
`,
      stderr: '',
    })
  })

  test('prints the ticks of several expressions, each instant once, as JSON', async () => {
    const args = ['0 6 * * MON-FRI', '0 6,9 * * FRI', ...BERLIN, '--from', '2026-11-19T12:00', '--count', '3', '--json']
    const { code, stdout, stderr } = await cron('next', ...args)
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(JSON.parse(stdout)).toEqual([
      { scheduled_for: '2026-11-20T05:00:00.000Z', local: '2026-11-20T06:00:00', offset: '+01:00' },
      { scheduled_for: '2026-11-20T08:00:00.000Z', local: '2026-11-20T09:00:00', offset: '+01:00' },
      { scheduled_for: '2026-11-23T05:00:00.000Z', local: '2026-11-23T06:00:00', offset: '+01:00' },
    ])
  })

  test('takes a moment without a zone as the time that clocks of --timezone show', async () => {
    const [local, utc, day] = await Promise.all(
      ['2027-06-01T10:00', '2027-06-01T08:00:00Z', '2027-06-02'].map((from) => {
        return cron('next', '0 * * * *', ...BERLIN, '--from', from, '--count', '1', '--json')
      }),
    )
    expect(JSON.parse(local?.stdout ?? '')).toMatchObject([{ scheduled_for: '2027-06-01T09:00:00.000Z' }])
    expect(utc?.stdout).toBe(local?.stdout)
    expect(JSON.parse(day?.stdout ?? '')).toMatchObject([{ local: '2027-06-02T01:00:00' }])
  })

  test('begins now, in UTC, with five', async () => {
    const before = Date.now()
    const { stdout } = await cron('next', '* * * * * *', '--json')
    const ticks = JSON.parse(stdout).map(({ scheduled_for }: { scheduled_for: string }) => Date.parse(scheduled_for))
    expect(ticks).toHaveLength(5)
    expect(ticks[0]).toBeGreaterThan(before)
    expect(ticks[0]).toBeLessThanOrEqual(Date.now() + 1_000)
    expect(JSON.parse(stdout)[0]).toEqual({
      scheduled_for: expect.stringMatching(/Z$/),
      local: new Date(ticks[0]).toISOString().slice(0, 19),
      offset: '+00:00',
    })
    expect((await cron('next', '15 * * * * *')).stdout).toMatch(
      /^(?:\w{3} \d{4}-\d\d-\d\d \d\d:\d\d:15 \+00:00 {2}in .+\n){5}$/,
    )
  })

  test('prints up to a thousand, and says when there are no more', async () => {
    expect(JSON.parse((await cron('next', '* * * * *', '--count', '1000', '--json')).stdout)).toHaveLength(1_000)
    const last = ['0 0 1 1 *', '--from', '2198-06-01']
    expect((await cron('next', ...last)).stdout).toMatch(/^\w{3} 2199-01-01 .*\nno more ticks before the year 2200\n$/)
    expect(JSON.parse((await cron('next', ...last, '--json')).stdout)).toHaveLength(1)
  })
})

describe('servo cron explain', () => {
  test('says an expression in words, and how often it ticks', async () => {
    expect(await cron('explain', '0 5 * * MON-FRI')).toEqual({
      code: 0,
      stdout: 'at 05:00 on Monday to Friday\n  5 times a week, about 261 a year\n',
      stderr: '',
    })
    expect((await cron('explain', '0 0 29 2 *')).stdout).toBe(
      'at 00:00 on 29 February\n  97 times in 400 years\n  only leap years have that day\n',
    )
  })

  test('says so where an expression does something else than it seems to say', async () => {
    const { stdout } = await cron('explain', '*/90 2 13 * FRI')
    expect(stdout.split('\n').slice(2)).toEqual([
      '  */90 is minute 0 alone: minutes end at 59',
      expect.stringContaining('a day counts if either day field names it'),
      expect.stringContaining('--timezone says what happens then'),
      '',
    ])
  })

  test.each([
    [
      '*/5 * * * *',
      /it runs every hour, so it follows elapsed time/,
      /02:00 to 02:55 have no tick/,
      /02:00 to 02:55 run twice/,
    ],
    ['30 2 * * *', /it follows the clock/, /02:30 runs at 03:00/, /02:30 runs once, the second time/],
    ['0 5 * * *', /it follows the clock/, /no tick is affected/, /no tick is affected/],
  ])('says what becomes of %s when clocks are changed', async (expression, follows, forward, back) => {
    const { stdout } = await cron('explain', expression, ...BERLIN)
    expect(stdout).toMatch(follows)
    expect(stdout).toMatch(new RegExp(`^ {2}[\\d-]{10} {2}clocks go forward at 02:00; ${forward.source}$`, 'm'))
    expect(stdout).toMatch(new RegExp(`^ {2}[\\d-]{10} {2}clocks go back at 03:00; ${back.source}$`, 'm'))
  })

  test('says so of a zone that keeps its time', async () => {
    const { stdout } = await cron('explain', '@daily', '--timezone', 'Asia/Kolkata')
    expect(stdout).toMatch(/\n {2}clocks in Asia\/Kolkata do not change\n$/)
  })

  test('prints JSON', async () => {
    const { stdout } = await cron('explain', '30 2 * * 5#5', ...BERLIN, '--json')
    expect(JSON.parse(stdout)).toEqual({
      cron: '30 2 * * 5#5',
      words: 'at 02:30 on the fifth Friday of the month',
      notes: ['months without a fifth Friday are passed over'],
      ticks_per_day: 1,
      ticks_per_week: null,
      ticks_per_year: expect.closeTo(4.3, 0),
      timezone: 'Europe/Berlin',
      follows: 'clock',
      clock_changes: [1, 2].map(() => ({
        at: expect.stringMatching(/T01:00:00\.000Z$/),
        words: expect.stringMatching(/^clocks go (?:forward at 02|back at 03):00$/),
        effect: null,
      })),
    })
  })
})

describe('wrong use of servo cron ends with 2, and says what to do', () => {
  const cases: [string, string[], RegExp][] = [
    ['nothing to do', [], /^Usage: servo cron/],
    ['no expression', ['next'], /error: missing argument <expression>/],
    ['nothing to explain', ['explain'], /error: missing argument <expression>/],
    ['an unknown command', ['nxt'], /error: unknown command 'nxt'\nhint: Did you mean next\?/],
    [
      'an unknown flag',
      ['next', '@daily', '--timezon', 'UTC'],
      /error: unknown option '--timezon'\nhint: Did you mean --timezone\?/,
    ],
    ['a flag of the other command', ['explain', '@daily', '--count', '3'], /error: unknown option '--count'/],
    ['an hour that is none', ['next', '0 25 * * *'], /hour 25 is out of range \(0–23\)\nhint: As hour write \*, 6, 9-17/],
    [
      'a day that is none',
      ['explain', '0 0 30 2 *'],
      /it never fires: none of its months has one of its days\nhint: Name a day that exists/,
    ],
    [
      'one wrong expression of two',
      ['next', '@daily', '@never'],
      /invalid cron expression "@never": .*\nhint: Write one of @hourly/,
    ],
    [
      'an expression without quotes',
      ['next', '0', '6', 'a', 'b', 'MON'],
      /error: 5 arguments were read as 5 cron expressions\nhint: Put .* in quotes/,
    ],
    [
      'a zone that is none',
      ['next', '@daily', '--timezone', 'Mars/Base'],
      /"Mars\/Base" is not a time zone\nhint: Write an IANA name/,
    ],
    [
      'an offset as the zone of an explanation',
      ['explain', '@daily', '--timezone', '+05:30'],
      /"\+05:30" is an offset, not a time zone\nhint: Write the IANA name of the zone, such as 'Asia\/Kolkata'/,
    ],
    ['no ticks', ['next', '@daily', '--count', '0'], /invalid value '0' for --count\nhint: Use a whole number from 1 to 1000/],
    ['too many ticks', ['next', '@daily', '--count', '1001'], /invalid value '1001' for --count/],
    [
      'a moment that is none',
      ['next', '@daily', '--from', 'now'],
      /--from 'now' is not a time\nhint: Write 2025-01-15T10:00:00Z/,
    ],
    ['a day of no month', ['next', '@daily', '--from', '2027-02-30'], /--from '2027-02-30' is not a time/],
    ['a moment before zones', ['next', '@daily', '--from', '1950-01-01'], /is not between the years 1970 and 2199/],
  ]
  test.each(cases)('%s', async (_, args, message) => {
    const { code, stdout, stderr } = await cron(...args)
    expect(stderr).toMatch(message)
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  })

  test('and as JSON', async () => {
    for (const command of ['next', 'explain']) {
      const { code, stdout, stderr } = await cron(command, '0 25 * * *', '--json')
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
      expect(JSON.parse(stderr).error).toMatchObject({ kind: 'invalid', code: 'bad_cron', hint: expect.any(String) })
    }
  })
})
