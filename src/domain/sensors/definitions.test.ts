import { describe, expect, test } from 'vitest'
import type { SensorDefinitionInput } from '../../contract/sensor.ts'
import { newEvent } from '../../model/event.ts'
import { SensorBench } from '../../testing/sensor-bench.ts'
import { SensorDefined } from './sensor-defined.event.ts'
import { SensorRemoved } from './sensor-removed.event.ts'

const poll = { config: { type: 'poll', every_ms: 60_000 } } as const
const webhook = (more: object = {}) => ({ type: 'webhook' as const, path: 'orders', verify: 'none' as const, ...more })

describe('a sensor', () => {
  test('[A30] that is declared again as it is stays as it is', () => {
    const sensor = new SensorBench()
    sensor.define(poll)
    const first = { ...sensor.definition }
    sensor.now += 1_000
    sensor.define(poll)
    expect(sensor.definition).toEqual(first)
    sensor.define({ ...poll, timeout_ms: 1_000 })
    expect(sensor.definition).toMatchObject({ timeout_ms: 1_000, created_at: first.created_at, defined_at: sensor.now })
    sensor.define(poll)
    expect(sensor.definition.timeout_ms, 'back to what it was before').toBe(30_000)
  })

  test('[A30] keeps its id and says what it was called, when it was removed, and is back when it is declared again', () => {
    const sensor = new SensorBench()
    sensor.define({ ...poll, file: 'assets/files.ts', line: 7 }, 'files')
    sensor.define(poll, 'new files')
    expect(sensor.definition).toMatchObject({
      sensor_name: 'new files',
      renamed_from: 'files',
      origin: 'code',
      sensor_type: 'poll',
    })
    sensor.write([newEvent(SensorRemoved, { sensor_id: sensor.id, request_id: 'r1', removed_by: 'ada' })])
    expect(sensor.definition.removed_at).toBe(sensor.now)
    sensor.define(poll, 'new files')
    expect(sensor.definition).toMatchObject({ removed_at: null, renamed_from: 'files' })
  })

  const wrong: [string, Omit<SensorDefinitionInput, 'name'>, string][] = [
    ['polls without code', { ...poll, has_code: false, asset_selection: ['a'] }, 'only code can poll'],
    [
      'has neither code nor a fixed request',
      { config: webhook(), has_code: false, asset_selection: ['a'] },
      'a sensor without code says which',
    ],
    ['has both', { config: webhook({ fixed: {} }) }, 'code and a fixed request exclude each other'],
    [
      'has no code and runs nothing',
      { config: webhook({ fixed: {} }), has_code: false },
      'a sensor without code says what it runs',
    ],
    ['verifies without a secret', { config: webhook({ verify: 'github' }) }, 'with verify: github, name the secret'],
    [
      'has a pointer that is none',
      { config: webhook({ fixed: { key: 'id' } }), has_code: false, asset_selection: ['a'] },
      'must be a JSON pointer',
    ],
    ['has a path of several words', { config: webhook({ path: '../admin' }) }, 'must be one word'],
    ['polls all the time', { config: { type: 'poll', every_ms: 10 } }, 'config'],
    ['watches nothing', { config: { type: 'run', states: [] } }, 'config'],
  ]
  test.each(wrong)('[A30] that %s is refused where it is declared', (_, definition, message) => {
    const facts = { sensor_id: 's', sensor_name: 's', definition_hash: 'h', request_id: 'r' }
    const parsed = SensorDefined.parse({ ...definition, ...facts })
    expect(parsed.success ? '' : parsed.error.message).toContain(message)
  })

  const right: [string, Omit<SensorDefinitionInput, 'name'>][] = [
    ['a signed webhook', { config: webhook({ verify: 'standard', secrets: ['HOOK', 'OLD_HOOK'] }) }],
    ['Pub/Sub', { config: { type: 'pubsub', topic: 'projects/shop/topics/orders', audience: 'https://servo.example' } }],
    ['assets', { config: { type: 'asset', assets: ['raw/*'], happenings: ['materialized', 'check_failed'] } }],
    ['runs, without code', { config: { type: 'run', states: ['FAILED'], fixed: {} }, has_code: false, asset_selection: ['a'] }],
  ]
  test.each(right)('[A30] may hear of %s', (_, definition) => {
    const sensor = new SensorBench()
    sensor.define(definition)
    expect(sensor.definition.sensor_type).toBe(definition.config.type)
  })
})
