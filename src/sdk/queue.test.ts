import { expect, test } from 'vitest'
import { projectManifest } from '../contract/definition.ts'
import { asset } from './asset.ts'
import { defineConfig } from './config.ts'
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

test.each(['', 'two words', 7])('%j is no queue', (queue) => {
  expect(() => asset('model', { queue: queue as string, run })).toThrow(expect.objectContaining({ kind: 'invalid' }))
})

test.each<[string, unknown]>([
  ['gpu', {}],
  ['gpu', 'https://workers.example'],
  ['gpu', { push: 'workers.example/tasks' }],
  ['gpu', { push: 'file:///etc/passwd' }],
  ['gpu', { push: 'https://' }],
  ['default', { push: 'https://workers.example' }],
  ['two words', { push: 'https://workers.example' }],
])('the queue %s cannot be %j', (name, queue) => {
  expect(() => defineConfig({ ...config, queues: { [name]: queue as { push: string } } })).toThrow(
    expect.objectContaining({ kind: 'invalid', hint: expect.any(String) }),
  )
})
