import { describe, expect, test } from 'vitest'
import type { SensorSource } from '../../../contract/sensor.ts'
import { changedFlags, flagOf } from './sensor-flags.ts'

const fixed = { partition: '/day', key: '/id' }
const hook: SensorSource = { type: 'webhook', path: 'shop', verify: 'github', secrets: ['A'], fixed }
const runs: SensorSource = { type: 'run', states: ['FAILED'], assets: null, fixed: { partition: null, key: null } }

describe('what flags change of a sensor', () => {
  test.each([
    [
      'nothing of its source, unless they name it',
      hook,
      { name: 'inbox-2', enable: false },
      { name: 'inbox-2', enabled: false },
    ],
    ['a part of its source', hook, { secret: ['B', 'A'] }, { config: { ...hook, secrets: ['B', 'A'] } }],
    ['where its key is', hook, { keyAt: '/order' }, { config: { ...hook, fixed: { partition: '/day', key: '/order' } } }],
    ['which runs it watches', runs, { watch: ['orders'] }, { config: { ...runs, assets: ['orders'] } }],
    [
      'its source, as a whole',
      hook,
      { topic: 'projects/shop/topics/orders', audience: 'shop' },
      {
        config: {
          ...{ type: 'pubsub', topic: 'projects/shop/topics/orders', audience: 'shop', service_account: null },
          fixed,
        },
      },
    ],
  ])('%s', (_, config, flags, changes) => {
    expect(changedFlags('inbox', config, flags)).toEqual(changes)
  })

  test.each([
    [{ on: ['materialized'] }, '--on is only for sensors of type asset'],
    [{ webhook: 'a', topic: 'b' }, '--webhook and --topic cannot be used together'],
    [{ maxTries: '0' }, "invalid value '0' for --max-tries"],
  ])('not %j', (flags, message) => {
    expect(() => changedFlags('inbox', hook, flags)).toThrow(message)
  })
})

test('what is wrong with a field is said of its flag', () => {
  expect(['config.fixed.key', 'config.states.0', 'asset_selection', 'name'].map(flagOf)).toEqual([
    '--key-at',
    '--run-state',
    '--select',
    'name',
  ])
})
