import { describe, expect, test } from 'vitest'
import { type AttemptResultInput, attemptResult } from './dispatch.ts'
import { isOutputPath, isOwnPath, isPathOf, outputFolder, partitionPart } from './output-path.ts'

const made = (output: unknown): AttemptResultInput => ({ outcome: 'SUCCEEDED', output: output as never })

const escapes = [
  '../../../../outside.parquet',
  'data/a/_/../../../outside.parquet',
  '/etc/passwd',
  'data//a/_/m1.parquet',
  'data\\a\\_\\m1.parquet',
  'data/a/_/*.parquet',
  'data/a/_/m?.parquet',
  'data/a/_/m[1].parquet',
  'data/a/_/{m1,m2}.parquet',
  'data/a/region=eu/m1.parquet',
  'data/a/_/.m1.parquet',
  'data/a/_/m1.parquet\n',
  'data/a/_/m1.parquet\0',
  's3://bucket/data/a/_/m1.parquet',
  'https://example.com/m1.parquet',
  'ledger/orchestration/2026-11-15/m1.json',
  'data/m1.parquet',
  `data/a/_/${'m'.repeat(2_000)}.parquet`,
  '',
]

describe('what a worker says of its output', () => {
  test.each(escapes)('cannot lead elsewhere: %j', (path) => {
    expect(isOutputPath(path)).toBe(false)
    expect(attemptResult.safeParse(made({ path })).success).toBe(false)
  })

  test.each([
    ['rows', -1],
    ['rows', 0.5],
    ['rows', Number.NaN],
    ['rows', Number.POSITIVE_INFINITY],
    ['rows', 1e16],
    ['rows', '3'],
    ['bytes', -1],
    ['bytes', 2 ** 53],
  ])('[D7] counts what can be counted: %s is not %d', (name, value) => {
    expect(attemptResult.safeParse(made({ [name]: value })).success).toBe(false)
    expect(attemptResult.safeParse(made({ [name]: 0 })).success).toBe(true)
  })

  test('asks for a wait that ends in time', () => {
    const failure = (retry_after_ms: number) => ({ category: 'user', message: 'no', retryable: true, retry_after_ms })
    expect(attemptResult.safeParse({ outcome: 'FAILED', error: failure(60_000) }).success).toBe(true)
    expect(attemptResult.safeParse({ outcome: 'FAILED', error: failure(9e15) }).success).toBe(false)
  })
})

describe('an execution', () => {
  const place = { assetKey: 'mart/orders', partitionKey: 'day=2025-01-15,region=eu', materializationId: 'm1' }
  const folder = outputFolder(place.assetKey, place.partitionKey)

  test('writes where its partition lies, under its own name', () => {
    expect(folder).toMatch(/^data\/mart\/orders\/day-2025-01-15_region-eu-[0-9a-f]{8}\/$/)
    expect(isOwnPath(`${folder}m1.parquet`, place)).toBe(true)
    expect(isPathOf(`${folder}m1.parquet`, 'mart/orders', 'm1')).toBe(true)
    expect(outputFolder('a', null)).toBe('data/a/_/')
    expect(outputFolder('a', '')).toBe('data/a/_/')
  })

  test.each([
    ['another execution', `${folder}m2.parquet`],
    ['one whose name begins alike', `${folder}m10.parquet`],
    ['another partition', `data/mart/orders/_/m1.parquet`],
    ['another asset', `data/mart/_/m1.parquet`],
    ['a folder', `${folder}m1/part-0.parquet`],
    ['a folder that is called like it', `${folder}m1.d/part-0.parquet`],
    ['nothing', folder],
    ['no kind of file', `${folder}m1.`],
    ['no kind of file either', `${folder}m1.parquet.`],
  ])('[D7] cannot have made what belongs to %s', (_, path) => {
    expect(isOwnPath(path, place)).toBe(false)
  })

  test('without a name of its own has no place', () => {
    for (const materializationId of [null, undefined, '', '..', '*'])
      expect(isOwnPath(`${folder}${materializationId}.parquet`, { ...place, materializationId })).toBe(false)
  })

  test('of a partition that is called like a folder does not reach the asset that is', () => {
    const theirs = `${outputFolder('a/b', 'x')}m1.parquet`
    for (const materializationId of ['x', 'x/m1', 'm1'])
      expect(isOwnPath(theirs, { assetKey: 'a', partitionKey: 'b', materializationId })).toBe(false)
    expect(isPathOf(theirs, 'a', 'x')).toBe(false)
    expect(isPathOf(theirs, 'a/b', 'm1')).toBe(true)
  })
})

test('the path of a partition is readable, safe and short', () => {
  expect(partitionPart(undefined)).toBe('_')
  expect(partitionPart('2025-01-15')).toBe('2025-01-15')
  expect(partitionPart('day=2025-01-15,region=eu')).toMatch(/^day-2025-01-15_region-eu-[0-9a-f]{8}$/)
  expect(partitionPart('../../etc')).toMatch(/^-[A-Za-z0-9._-]+$/)
  expect(partitionPart('_')).not.toBe('_')
  expect(partitionPart('x'.repeat(5_000)).length).toBeLessThan(140)
})
