import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { partitionDefinition } from '../../partitions/definition.ts'
import { partitionSet } from '../../partitions/partition-set.ts'
import { parsePartitions } from './parse-partitions.ts'
import { addAll } from './partitions-of-run.ts'
import { MAX_PARTITIONS_PER_TASK, taskRanges } from './task-ranges.ts'

const day = { type: 'daily', start: '2025-01-01', timezone: 'UTC' }
const region = { type: 'keys', keys: ['eu', 'us'] }
const setOf = (definition: object) =>
  partitionSet(partitionDefinition.parse(definition), { nowMs: Date.UTC(2025, 2, 1), dynamicKeys: () => ['a', 'b', 'c'] })
const days = setOf(day)
const cube = setOf({ type: 'multi', dimensions: { day, region, zone: region } })

const named = (set: typeof days, keys: readonly string[], atMost = MAX_PARTITIONS_PER_TASK) =>
  taskRanges(set, keys, atMost).map(({ key, keys }) => [key, keys.length])

describe('partitions that one task makes', () => {
  test('are neighbours, in whatever order they were asked for', () => {
    expect(named(days, ['2025-01-31', '2025-01-05', '2025-02-01', '2025-01-06', '2025-01-08'])).toEqual([
      ['2025-01-05..2025-01-06', 2],
      ['2025-01-08', 1],
      ['2025-01-31..2025-02-01', 2],
    ])
    expect(named(setOf({ type: 'dynamic', name: 'x' }), ['c', 'b'])).toEqual([['b..c', 2]])
  })

  test('[P15] are no more than the asset allows, and no more than an event can carry', () => {
    expect(named(days, [...days.keys(0, 5)], 2).map(([, count]) => count)).toEqual([2, 2, 1])
    const many = setOf({ type: 'keys', keys: Array.from({ length: 10_001 }, (_, i) => `${i}`.padStart(5, '0')) })
    expect(named(many, [...many.keys()]).map(([, count]) => count)).toEqual([10_000, 1])
    const long = setOf({ type: 'keys', keys: Array.from({ length: 2_000 }, (_, i) => `${i}`.padStart(500, 'x')) })
    const ranges = taskRanges(long, long.keys(), MAX_PARTITIONS_PER_TASK)
    expect(ranges.length).toBeGreaterThan(1)
    for (const { keys } of ranges) expect(JSON.stringify(keys).length).toBeLessThan(500_000)
  })

  test('of several dimensions follow each other in time and are the same in the others', () => {
    const asked = addAll(new Set(), parsePartitions(cube, 'day=2025-01-01..2025-01-03,region=eu'))
    expect(taskRanges(cube, asked, MAX_PARTITIONS_PER_TASK).map(({ key, values }) => [key, values])).toEqual([
      ['day=2025-01-01..2025-01-03,region=eu,zone=eu', { region: 'eu', zone: 'eu' }],
      ['day=2025-01-01..2025-01-03,region=eu,zone=us', { region: 'eu', zone: 'us' }],
    ])
  })

  test('are each made once, and the name of a range asks for exactly its partitions', () => {
    const picked = (set: typeof days) =>
      fc.uniqueArray(fc.nat(set.count - 1), { minLength: 1, maxLength: 60 }).map((positions) => ({ set, positions }))
    fc.assert(
      fc.property(fc.oneof(picked(days), picked(cube)), fc.integer({ min: 1, max: 9 }), ({ set, positions }, atMost) => {
        const keys = positions.map((position) => set.at(position))
        const ranges = taskRanges(set, keys, atMost)
        expect(ranges.flatMap((range) => range.keys).sort()).toEqual(keys.sort())
        for (const range of ranges) {
          expect(range.keys.length).toBeLessThanOrEqual(atMost)
          expect([...addAll(new Set(), parsePartitions(set, range.key))]).toEqual(range.keys)
        }
      }),
    )
  })
})
