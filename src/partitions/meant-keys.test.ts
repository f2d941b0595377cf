import { expect, test } from 'vitest'
import { partitionDefinition } from './definition.ts'
import { partitionSet, positionIn } from './partition-set.ts'

const daily = { type: 'daily', start: '2026-08-15', timezone: 'UTC' }
const regions = { type: 'keys', keys: ['eu', 'us'] }

function hint(definition: object, key: string): string | undefined {
  const set = partitionSet(partitionDefinition.parse(definition), { nowMs: Date.UTC(2026, 9, 3), dynamicKeys: () => [] })
  try {
    positionIn(set, key)
  } catch (error) {
    return (error as { hint?: string }).hint
  }
  return undefined
}

test.each([
  [regions, 'eu,us', 'Repeat the option: --partition eu --partition us'],
  [daily, '2026-09-01, 2026-09-03', 'Repeat the option: --partition 2026-09-01 --partition 2026-09-03'],
  [daily, 'yesterday', 'Write latest for the last window that has closed.'],
  [daily, 'LATEST', 'Write latest for the last window that has closed.'],
  [daily, '2026-09', 'Write the range 2026-09-01..2026-09-30.'],
  [daily, '2026-09-*', 'Write the range 2026-09-01..2026-09-30.'],
  [daily, '2026-10', 'Write the range 2026-10-01..2026-10-02.'],
  [daily, '2026-08-15T00', 'Request a partition that exists.'],
  [daily, '2026-07', 'Request a partition that exists.'],
  [daily, '', 'Request a partition that exists.'],
  [regions, 'latest', 'Request a partition that exists.'],
  [regions, 'eu,mars', 'Request a partition that exists.'],
])('of a key that does not exist the hint says how to write what was meant: %#', (definition, key, expected) => {
  expect(hint(definition, key)).toBe(expected)
})
