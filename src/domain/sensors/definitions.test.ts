import { describe, expect, test } from 'vitest'
import { assetDefinition } from '../../contract/project-manifest.ts'
import { type SensorDefinitionInput, sensorDefinition } from '../../contract/sensor.ts'
import { newEvent } from '../../model/event.ts'
import { Story } from '../../testing/histories/story.ts'
import { SensorBench } from '../../testing/sensor-bench.ts'
import { AssetGraph } from '../assets/graph.ts'
import { declaredSensors } from './declared-sensors.ts'
import { SensorDefined } from './sensor-defined.event.ts'
import { sensorDefinitions } from './sensor-definitions.table.ts'
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
      'has an invalid pointer',
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

let minted = 0
const mintId = (): string => `id-${++minted}`
const inbox = { name: 'inbox', config: { type: 'poll', every_ms: 60_000 } } as const

/** Loads a project with these sensors, and returns the types of the events that it wrote. */
function load(story: Story, ...declared: SensorDefinitionInput[]): string[] {
  const events = declaredSensors({
    declared: declared.map((one) => sensorDefinition.parse(one)),
    known: story.rows(sensorDefinitions),
    mintId,
    graph: new AssetGraph([assetDefinition.parse({ asset_key: 'orders', kind: 'asset' })]),
  })
  for (const { definition, payload } of events) story.tell(definition, payload as Record<string, unknown>)
  return events.map(({ definition }) => definition.type)
}
const shown = (story: Story) =>
  story.rows(sensorDefinitions).map(({ sensor_name, removed_at }) => [sensor_name, removed_at === null])

test('[A30] a project that is loaded again as it is writes nothing, even when a sensor moved to another line', () => {
  const story = new Story()
  expect(load(story, inbox)).toEqual(['SensorDefined'])
  expect(load(story, { ...inbox, file: 'assets/other.ts', line: 9 })).toEqual([])
  expect(load(story, { ...inbox, timeout_ms: 5_000 })).toEqual(['SensorDefined'])
})

test('[A30] a renamed sensor keeps its id, a removed one is kept on record, and one that comes back gets its id back', () => {
  const story = new Story()
  load(story, inbox)
  const [id] = story.rows(sensorDefinitions).map(({ sensor_id }) => sensor_id)
  expect(load(story, { ...inbox, name: 'mailbox', renamed_from: 'inbox' })).toEqual(['SensorDefined'])
  expect(shown(story)).toEqual([['mailbox', true]])
  expect(load(story)).toEqual(['SensorRemoved'])
  expect(shown(story)).toEqual([['mailbox', false]])
  load(story, { ...inbox, name: 'mailbox' })
  expect(story.rows(sensorDefinitions)).toMatchObject([{ sensor_id: id, removed_at: null, renamed_from: 'inbox' }])
})

test('[A30] two sensors never share an id, whatever they were called before', () => {
  const story = new Story()
  load(story, inbox)
  load(story, inbox, { ...inbox, name: 'copy', renamed_from: 'inbox' })
  expect(new Set(story.rows(sensorDefinitions).map(({ sensor_id }) => sensor_id)).size).toBe(2)
})

test('[A8] a load leaves alone a sensor that was made over the API', () => {
  const story = new Story()
  const { name: sensor_name, ...rest } = inbox
  story.tell(SensorDefined, {
    ...{ ...rest, sensor_id: 'api-1', sensor_name, origin: 'api' },
    ...{ definition_hash: 'h', request_id: 'r' },
  })
  expect(load(story)).toEqual([])
  expect(load(story, inbox)).toEqual(['SensorDefined'])
  expect(shown(story)).toEqual([
    ['inbox', true],
    ['inbox', true],
  ])
})
