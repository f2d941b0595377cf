import { expect, test } from 'vitest'
import { HOUR_MS } from '../../lib/time.ts'
import { clockFindings } from './clock.ts'
import { examine, shownLines } from './finding.ts'
import { diskFinding, nodeFinding } from './machine.ts'
import { findingsOf } from './project.ts'

const NOW = Date.parse('2025-01-15T10:00:00Z')

test.each([
  ['v22.18.0', 'ok'],
  ['v24.1.0', 'ok'],
  ['v22.17.9', 'problem'],
  ['v9.30.0', 'problem'],
])('Node %s is %s where 22.18 is needed', (version, level) => {
  expect(nodeFinding(version, { version: '0.1.0', engines: { node: '>=22.18' } })).toMatchObject({ area: 'node', level })
})

test.each([
  ['100 GB of 1 TB', 100_000_000, 1_000_000_000, 'ok'],
  ['0.9 GB of 4 GB', 900_000, 4_000_000, 'warning'],
  ['4 % of 1 TB', 40_000_000, 1_000_000_000, 'warning'],
  ['nothing', 0, 1_000_000_000, 'problem'],
  ['a file system that does not say its size', 5_000_000, 0, 'ok'],
])('%s free on the disk is %s', (_, bavail, blocks, level) => {
  expect(diskFinding('/shop', { bsize: 1_000, blocks, bavail })).toMatchObject({ area: 'disk', level })
})

test('free space has a unit that leaves a figure to read', () => {
  const message = (bavail: number): string => diskFinding('/shop', { bsize: 1_000, blocks: 4_000_000, bavail }).message
  expect([2_500_000, 12_345, 45].map(message)).toEqual([
    expect.stringMatching(/^2\.5 GB free/),
    expect.stringMatching(/^12 MB free/),
    expect.stringMatching(/^45 KB free/),
  ])
})

test('the line that points into a query stays below what it points to, and other words are wrapped', () => {
  const message = 'ids: no column "idd"\n\nLINE 1: select idd from orders\n               ^\n'
  expect(shownLines({ message, hint: 'servo check lists every problem.' }, 20)).toEqual([
    ...['ids: no column "idd"', '', 'LINE 1: select idd from orders', '               ^'],
    ...['servo check lists', 'every problem.'],
  ])
  expect(shownLines({ message: 'one two three', hint: 'four' }, 9)).toEqual(['one two', 'three.', 'four'])
})

test('files from the future tell that a clock was ahead; a file system tells that its clock differs', () => {
  const found = (madeMs: number, writtenMs: number): string[] =>
    clockFindings([{ what: 'the newest segment', madeMs, writtenMs }], NOW).map(({ level, message }) => `${level}: ${message}`)
  expect(found(NOW - HOUR_MS, NOW - HOUR_MS + 20)).toEqual([expect.stringMatching(/^ok: /)])
  expect(found(NOW + 72 * HOUR_MS, NOW)).toEqual([
    'warning: the newest segment is dated 2025-01-18T10:00:00.000Z, 3 days ahead of this clock: either a clock was fast, or this one is slow',
  ])
  const ofFiles = 'warning: the clock of the file system was'
  const when = 'the clock of this machine when the newest segment was written'
  expect(found(NOW - 10_000, NOW - HOUR_MS * 3 - 10_000)).toEqual([`${ofFiles} 3 hours behind ${when}`])
  expect(found(NOW - 10_000, NOW + 90_000)).toEqual([`${ofFiles} 90 s ahead of ${when}`])
  // A folder that was restored from a copy.
  expect(found(NOW - 72 * HOUR_MS, NOW - HOUR_MS)).toEqual([expect.stringMatching(/^ok: /)])
  expect(clockFindings([], NOW)).toMatchObject([{ level: 'ok' }])
})

test('variables that are missing are findings of their own; of other problems the first is named', () => {
  const counts = { assets: 3, schedules: 1, sensors: 0, queries: 0 }
  const missing = { code: 'missing_variable', message: 'resource api needs SERVO_API_URL', hint: 'Set it.' }
  const broken = [
    { code: 'cycle', message: 'a needs itself', file: 'assets/a.ts', line: 2 },
    { code: 'cycle', message: 'b needs itself' },
  ]
  const found = (problems: Parameters<typeof findingsOf>[1]['problems']) =>
    findingsOf('/shop', { problems, counts, unchecked: [] }).map(({ level, area, message }) => `${level} ${area} ${message}`)
  expect(found([])).toEqual([
    'ok project /shop; assets: 3, schedules: 1, sensors: 0',
    'ok variables all variables of resources and webhooks are set',
  ])
  expect(found([missing])).toEqual([
    'ok project /shop; assets: 3, schedules: 1, sensors: 0',
    'problem variables resource api needs SERVO_API_URL',
  ])
  expect(found([...broken, missing])).toEqual([
    'problem project assets/a.ts:2 a needs itself (and 1 more)',
    'problem variables resource api needs SERVO_API_URL',
  ])
})

test('a check that fails is a problem, and the others go on', async () => {
  const refused = Object.assign(new Error('EACCES: permission denied'), { code: 'EACCES' })
  expect(await examine('store', () => Promise.reject(refused))).toEqual([
    {
      level: 'problem',
      area: 'store',
      message: 'EACCES: permission denied',
      hint: 'Check its owner and permissions.',
    },
  ])
})
