import { expect, test } from 'vitest'
import { projectManifest } from '../../contract/project-manifest.ts'
import { asset } from '../declare/asset.ts'
import { defineConfig, type Timing } from '../declare/config.ts'
import type { Duration } from '../duration.ts'
import { describeProject } from './describe.ts'

const run = (): number => 1
const config = { project: 'shop', dirs: ['assets'] }

test('an asset names its queue, and the project says which queues are told of work', () => {
  const queues = { gpu: { push: 'https://workers.example/tasks' } }
  const described = describeProject([asset('model', { queue: 'gpu', run }), asset('report', { run })], {
    config: defineConfig({ ...config, queues }),
  })
  const { assets, queues: told } = projectManifest.parse(described)
  expect(assets.map(({ asset_key, queue }) => [asset_key, queue])).toEqual([
    ['model', 'gpu'],
    ['report', undefined],
  ])
  expect(told).toEqual(queues)
  expect(projectManifest.parse(describeProject([], { config: defineConfig(config) })).queues).toEqual({})
})

test('the project says how much a queue may have at a time, that of this machine included', () => {
  const queues = { gpu: { limit: 20 }, told: { push: 'https://workers.example', limit: 5 }, default: { limit: 4 } }
  const described = describeProject([], { config: defineConfig({ ...config, queues }) })
  expect(projectManifest.parse(described).queues).toEqual(queues)
})

test('how long a worker may be silent is what its asset says, or else the project', () => {
  const values = [
    asset('model', { queue: 'gpu', heartbeatTimeout: '2m', run }),
    asset('scores', { queue: 'gpu', run }),
    asset('report', { run }),
  ]
  const told = (timing?: Timing) =>
    projectManifest
      .parse(describeProject(values, { config: defineConfig({ ...config, ...(timing && { timing }) }) }))
      .assets.map(({ asset_key, heartbeat_timeout_sec: sec }) => [asset_key, sec])
  expect(told()).toEqual([
    ['model', 120],
    ['report', undefined],
    ['scores', undefined],
  ])
  expect(told({ heartbeatTimeout: '90s' })).toEqual([
    ['model', 120],
    ['report', undefined],
    ['scores', 90],
  ])
})

test.each<[string, object]>([
  ['forever', { queue: 'gpu' }],
  ['0s', { queue: 'gpu' }],
  ['2d', { queue: 'gpu' }],
  ['2m', {}],
  ['2m', { queue: 'default' }],
])('a worker may not be silent for %s, of an asset with %j', (heartbeatTimeout, rest) => {
  expect(() => asset('model', { ...rest, heartbeatTimeout: heartbeatTimeout as Duration, run })).toThrow(
    expect.objectContaining({ kind: 'invalid', hint: expect.any(String) }),
  )
})

test('the project says how patient Servo is', () => {
  const timing: Timing = { sweep: '1m', stuckDispatch: '30s', cancelGrace: '0s' }
  const described = describeProject([], { config: defineConfig({ ...config, timing }) })
  expect(projectManifest.parse(described).timing).toEqual({ sweep_ms: 60_000, stuck_dispatch_ms: 30_000, cancel_grace_ms: 0 })
  expect(projectManifest.parse(describeProject([], { config: defineConfig(config) })).timing).toEqual({})
})

test.each<unknown>([
  { sweep: '0s' },
  { sweep: '2d' },
  { sweep: 5 },
  { stuckDispatch: '1s' },
  { cancelGrace: '2h' },
  { heartbeatTimeout: '0.5s' },
  { patience: '1m' },
  '5m',
  ['5m'],
  null,
])('its timing cannot be %j', (timing) => {
  expect(() => defineConfig({ ...config, timing: timing as Timing })).toThrow(
    expect.objectContaining({ kind: 'invalid', hint: expect.any(String) }),
  )
})

test.each(['', 'two words', 7])('%j is no queue', (queue) => {
  expect(() => asset('model', { queue: queue as string, run })).toThrow(expect.objectContaining({ kind: 'invalid' }))
})

test.each<[string, unknown]>([
  ['gpu', {}],
  ['gpu', 'https://workers.example'],
  ['gpu', { push: 'workers.example/tasks' }],
  ['gpu', { push: 'file:///etc/passwd' }],
  ['gpu', { push: 'https://' }],
  ['gpu', { limit: 0 }],
  ['gpu', { limit: 1.5 }],
  ['gpu', { limit: '3' }],
  ['gpu', { limit: 100_001 }],
  ['gpu', { push: 'https://workers.example', limits: 3 }],
  ['default', { push: 'https://workers.example' }],
  ['two words', { push: 'https://workers.example' }],
])('the queue %s cannot be %j', (name, queue) => {
  expect(() => defineConfig({ ...config, queues: { [name]: queue as { push: string } } })).toThrow(
    expect.objectContaining({ kind: 'invalid', hint: expect.any(String) }),
  )
})
