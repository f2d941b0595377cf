import { describe, expect, test } from 'vitest'
import { type PartitionDefinition, partitionDefinition } from '../definition.ts'
import { partitionSet } from '../partition-set.ts'
import { partitionMapping } from './mapping.ts'
import { takesMany } from './takes-many.ts'

const options = { nowMs: Date.UTC(2025, 1, 2), dynamicKeys: () => [] }
const day = { type: 'daily', start: '2025-01-31', timezone: 'UTC' }
const month = { type: 'monthly', start: '2025-01', timezone: 'UTC' }
const week = { type: 'weekly', start: '2025-01-06', timezone: 'UTC' }
const minute = { type: 'minutely', start: '2025-01-01T00:00', timezone: 'UTC' }
const region = { type: 'keys', keys: ['eu'] }
const market = { type: 'multi', dimensions: { day, region } }
const setOf = (of: object | undefined) =>
  partitionSet(of && (partitionDefinition.parse(of) as PartitionDefinition | undefined), options)

describe('code gets a collection of partitions because of the mapping, however many there happen to be', () => {
  test.each<[string, object, object | undefined, object | undefined, boolean]>([
    ['the same', { type: 'identity' }, day, day, false],
    ['the one before', { type: 'time_window', start_offset: -1, end_offset: -1 }, day, day, false],
    ['the last week', { type: 'time_window', start_offset: -6 }, day, day, true],
    ['the only day of the first month', { type: 'time_window' }, month, day, true],
    ['the month of a day', { type: 'time_window' }, day, month, false],
    ['all, of a list of one', { type: 'all' }, undefined, region, true],
    ['the last', { type: 'last' }, undefined, day, false],
    ['one of two dimensions', { type: 'dimension', dimension: 'day' }, day, market, true],
    [
      'both dimensions',
      { type: 'multi', dimensions: { day: { dimension: 'day' }, region: { dimension: 'region' } } },
      market,
      market,
      false,
    ],
    ['a week of months, which may begin in one and end in another', { type: 'time_window' }, week, month, true],
    ['months, of which the first happens to be shorter', { type: 'time_window' }, month, { ...month, start: '2025-02' }, false],
    [
      'days, of which the first is before a weekend',
      { type: 'time_window' },
      { ...day, exclusions: ['0 0 * * SAT'] },
      day,
      false,
    ],
    ['five minutes of three', { type: 'time_window' }, { ...minute, every: 15 }, { ...minute, every: 5 }, true],
    ['a table of one to one', { type: 'static', keys: { eu: ['a', 'b'] } }, { type: 'keys', keys: ['a', 'b'] }, region, false],
    ['a table of one to several', { type: 'static', keys: { eu: 'a', us: 'a' } }, { type: 'keys', keys: ['a'] }, region, true],
    ['what has no partitions', { type: 'all' }, day, undefined, false],
  ])('%s', (_, mapping, downstream, upstream, many) => {
    const sets = { downstream: setOf(downstream), upstream: setOf(upstream) }
    expect(takesMany(partitionMapping.parse(mapping), sets)).toBe(many)
  })
})
