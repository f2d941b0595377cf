import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { canonicalKey, partitionDefinition } from './definition.ts'
import { keyOfDimensions, readKey, writeKey } from './key.ts'

const market = partitionDefinition.parse({
  type: 'multi',
  dimensions: { region: { type: 'keys', keys: ['eu', 'us'] }, date: { type: 'daily', start: '2025-01-01' } },
})

describe('the key of a partition', () => {
  test('is the text itself when there is one dimension, whatever is in it', () => {
    const regions = partitionDefinition.parse({ type: 'keys', keys: ['a=b,c', 'eu'] })
    expect(canonicalKey(regions, 'a=b,c')).toBe('a=b,c')
  })

  test.each(['date=2025-01-15,region=eu', 'region=eu,date=2025-01-15', 'region=%65u,date=2025%2D01%2D15'])(
    '[P2] of several dimensions is one text however it was asked for: %s',
    (asked) => {
      expect(canonicalKey(market, asked)).toBe('date=2025-01-15,region=eu')
      expect(canonicalKey(market, readKey(asked))).toBe('date=2025-01-15,region=eu')
    },
  )

  test('cannot imitate another by what its values contain', () => {
    const key = writeKey({ region: 'eu,date=2024-01-01', date: '100%\n' })
    expect(key).toBe('date=100%25%0A,region=eu%2Cdate%3D2024-01-01')
    expect(readKey(key)).toEqual({ region: 'eu,date=2024-01-01', date: '100%\n' })
  })

  test('comes back as it was for any text in names and values', () => {
    const text = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.string({ unit: fc.constantFrom(',', '=', '%', '%2C', '\n', 'ü', '💧') }),
    )
    const dimensions = fc.dictionary(
      text.filter((name) => name !== '' && name !== '__proto__'),
      text,
      { minKeys: 1, maxKeys: 4 },
    )
    fc.assert(
      fc.property(dimensions, (values) => {
        const key = writeKey(values)
        expect(readKey(key)).toEqual({ ...values })
        expect(key).toMatch(/^[\w\-.!~*'()%=,]+$/)
        const names = Object.keys(values)
        const turned = key.split(',').reverse().join(',')
        expect(keyOfDimensions(names, turned)).toBe(key)
      }),
    )
  })

  test.each([
    ['eu', 'it is a single key, but these partitions have the dimensions date, region'],
    ['date=2025-01-15', 'the dimension region is missing'],
    ['date=2025-01-15,region=eu,shop=7', 'unknown dimension shop; the dimensions are date, region'],
    ['date=2025-01-15,region=eu,region=us', 'it has the dimension region twice'],
    ['date=2025-01-15,eu', '"eu" does not have the form dimension=value'],
    ['date=2025-01-15,region=50%', '"50%" is not percent-encoded text; a percent sign itself is written %25'],
    ['date=2025-01-15,=eu', '"=eu" does not have the form dimension=value'],
  ])('that cannot be read says why: %s', (asked, why) => {
    expect(() => canonicalKey(market, asked)).toThrow(
      expect.objectContaining({
        code: 'bad_partition_key',
        message: `${JSON.stringify(asked)} is not a partition key: ${why}`,
      }),
    )
  })

  test('says how it would be written', () => {
    expect(() => canonicalKey(market, 'eu')).toThrow(
      expect.objectContaining({ hint: 'Write date=…,region=… with percent-encoded values.' }),
    )
  })

  test('with dimensions is refused where there is one without a name, and so is half a character', () => {
    const daily = partitionDefinition.parse({ type: 'daily', start: '2025-01-01' })
    expect(() => canonicalKey(daily, { date: '2025-01-01' })).toThrow(expect.objectContaining({ code: 'bad_partition_key' }))
    expect(() => writeKey({ date: '\ud83d', region: 'eu' })).toThrow(expect.objectContaining({ code: 'bad_partition_key' }))
  })
})
