import { expect, test } from 'vitest'
import { Pace } from './pace.ts'

test('an attempt is expected to take what the last of its asset took', () => {
  const pace = new Pace()
  for (let i = 0; i < 50; i++) {
    pace.ended('tiny', 0.1)
    pace.ended('huge', 1_000)
  }
  expect(pace.expectedMs('tiny')).toBeCloseTo(0.1)
  expect(pace.expectedMs('huge')).toBeCloseTo(1_000)
})

test('one of an asset that never ran is expected to be like the others, and long while there are none', () => {
  const pace = new Pace()
  expect(pace.expectedMs('new')).toBe(10)
  for (let i = 0; i < 50; i++) pace.ended(`asset_${i}`, 0.1)
  expect(pace.expectedMs('new')).toBeLessThan(0.2)
})

test('a single long one among brief ones is remembered for a while', () => {
  const pace = new Pace()
  pace.ended('mostly tiny', 0.1)
  pace.ended('mostly tiny', 300)
  expect(pace.expectedMs('mostly tiny')).toBeGreaterThan(20)
  for (let i = 0; i < 40; i++) pace.ended('mostly tiny', 0.1)
  expect(pace.expectedMs('mostly tiny')).toBeLessThan(1)
})
