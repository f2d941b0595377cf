import { expect, test } from 'vitest'
import { partitionDefinition } from './definition.ts'
import { mappingInWords, partitionsInWords } from './in-words.ts'
import { partitionMapping } from './mappings/mapping.ts'

test.each([
  [{ type: 'daily', start: '2025-01-01' }, 'daily from 2025-01-01'],
  [{ type: 'daily', start: '2025-01-01', timezone: 'Europe/Paris' }, 'daily from 2025-01-01 in Europe/Paris'],
  [{ type: 'monthly', start: '2025-01', end: '2026-01' }, 'monthly from 2025-01 until 2026-01'],
  [{ type: 'minutely', start: '2025-01-01T00:00', every: 5 }, 'every 5 minutes from 2025-01-01T00:00'],
  [{ type: 'cron', cron: '0 6 * * *', start: '2025-01-01T06:00' }, 'cron 0 6 * * * from 2025-01-01T06:00'],
  [{ type: 'daily', start: '2025-01-01', end_offset: 1 }, 'daily from 2025-01-01 +1 windows'],
  [{ type: 'daily', start: '2025-01-01', exclusions: ['0 0 * * SAT'] }, 'daily from 2025-01-01 without 0 0 * * SAT'],
  [{ type: 'keys', keys: ['eu', 'us'] }, 'keys [eu, us]'],
  [{ type: 'keys', keys: ['a', 'b', 'c', 'd', 'e', 'f'] }, 'keys [a, b, c, d and 2 more]'],
  [{ type: 'dynamic', name: 'customers' }, 'dynamic customers'],
  [
    { type: 'multi', dimensions: { region: { type: 'keys', keys: ['eu'] }, date: { type: 'daily', start: '2025-01-01' } } },
    'date: daily from 2025-01-01 × region: keys [eu]',
  ],
])('partitions are said as one would: %j', (definition, words) => {
  expect(partitionsInWords(partitionDefinition.parse(definition))).toBe(words)
})

const same = { type: 'identity' }
test.each([
  [same, 'the same partition'],
  [{ type: 'all' }, 'all partitions'],
  [{ type: 'last' }, 'the last partition'],
  [{ type: 'specific', keys: ['eu'] }, 'eu'],
  [{ type: 'static', keys: { eu: 'europe', us: ['america'] } }, 'by a table of 2 keys'],
  [{ type: 'time_window' }, 'the windows that overlap'],
  [{ type: 'time_window', start_offset: -1, end_offset: -1 }, 'the window before'],
  [{ type: 'time_window', start_offset: -7, end_offset: -7 }, 'the window 7 before'],
  [{ type: 'time_window', start_offset: 1, end_offset: 1 }, 'the window 1 after'],
  [{ type: 'time_window', start_offset: -6, end_offset: 0 }, 'the windows from -6 to 0'],
  [{ type: 'dimension', dimension: 'date', mapping: same }, 'date: the same partition, the rest whole'],
  [
    { type: 'multi', dimensions: { date: { dimension: 'date', mapping: same }, shop: { dimension: 'region' } } },
    'date: the same partition; shop: what belongs together of region',
  ],
  [{ type: 'multi', dimensions: {} }, 'all partitions'],
])('a mapping is said as one would: %j', (mapping, words) => {
  expect(mappingInWords(partitionMapping.parse(mapping))).toBe(words)
})
