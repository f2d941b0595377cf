import { describe, expect, test } from 'vitest'
import { partitionDefinition } from '../../partitions/definition.ts'
import { partitionSet } from '../../partitions/partition-set.ts'
import { parsePartitions } from './parse-partitions.ts'
import { addAll } from './partitions-of-run.ts'

const day = { type: 'daily', start: '2025-01-01', timezone: 'UTC' }
const region = { type: 'keys', keys: ['eu', 'us'] }
const latest = (definition: object, asked = 'latest', nowMs = Date.UTC(2025, 0, 5, 12)): string[] => {
  const set = partitionSet(partitionDefinition.parse(definition), { nowMs, dynamicKeys: () => ['a', 'b'] })
  return [...addAll(new Set(), parsePartitions(set, asked))]
}

describe('latest', () => {
  test('is the last window that is over', () => {
    expect(latest(day)).toEqual(['2025-01-04'])
    expect(latest({ type: 'monthly', start: '2024-01', timezone: 'UTC' })).toEqual(['2024-12'])
    expect(() => latest(day, 'latest', Date.UTC(2025, 0, 1, 1))).toThrow('there is no latest window: none has closed yet')
  })

  test('of several dimensions is that of time, with all of the others unless they are named', () => {
    const both = { type: 'multi', dimensions: { day, region } }
    expect(latest(both)).toEqual(['day=2025-01-04,region=eu', 'day=2025-01-04,region=us'])
    expect(latest(both, 'day=latest,region=us')).toEqual(['day=2025-01-04,region=us'])
    const twice = { type: 'multi', dimensions: { made: day, sold: day } }
    expect(() => latest(twice)).toThrow('`latest` needs a time dimension, but there are several here')
    expect(latest(twice, 'made=latest,sold=2025-01-01')).toEqual(['made=2025-01-04,sold=2025-01-01'])
  })

  test('is refused where keys are not time, unless one is called so', () => {
    expect(() => latest(region)).toThrow('no time partitions, so `latest` does not apply to it')
    expect(() => latest({ type: 'dynamic', name: 'shops' })).toThrow('no time partitions, so `latest` does not apply to it')
    expect(latest({ type: 'keys', keys: ['latest', 'stable'] })).toEqual(['latest'])
  })
})

test('a range of one key is that key, whatever the partitions are', () => {
  expect(latest(day, '2025-01-02..2025-01-02')).toEqual(['2025-01-02'])
  expect(latest(region, 'eu..eu')).toEqual(['eu'])
  expect(latest({ type: 'dynamic', name: 'shops' }, 'b..b')).toEqual(['b'])
  const both = { type: 'multi', dimensions: { day, region } }
  expect(latest(both, 'day=2025-01-02..2025-01-02,region=us..us')).toEqual(['day=2025-01-02,region=us'])
})

test('a key without dimensions is refused with the dimensions that there are', () => {
  const hint = 'Write place=…,when=… with percent-encoded values.'
  expect(() => latest({ type: 'multi', dimensions: { place: region, when: day } }, '2025-01-04')).toThrow(
    expect.objectContaining({ hint }),
  )
})
