import { expect, test } from 'vitest'
import { z } from 'zod'
import { projectManifest } from '../../contract/project-manifest.ts'
import { checkSensor } from '../../contract/sensor.ts'
import { asset } from '../declare/asset.ts'
import { pubsub, webhook } from '../declare/push-source.ts'
import { sensor } from '../declare/sensor.ts'
import { schedule } from '../declare/trigger.ts'
import { daily, keys, multi } from '../partitions/partitions.ts'
import { describeProject } from './describe.ts'
import { graphProblems } from './graph-problems.ts'
import { scheduleProblems } from './schedule-problems.ts'

const config = { project: 'shop', dirs: ['assets'] }
const orders = asset('orders', { run: () => 1 })
const schema = z.object({ order: z.string() })
const on = () => undefined

function described(...values: unknown[]) {
  const manifest = describeProject([orders, ...values], { config, root: import.meta.dirname, codeVersionOf: () => 'v1' })
  return { manifest, ...projectManifest.parse(manifest) }
}

/** What every sensor of this file has in common. */
const common = {
  code_version: 'v1',
  file: 'describe-triggers.test.ts',
  line: expect.any(Number),
  has_code: true,
  enabled: true,
}

test('a sensor is described with all that its author said, and is a whole definition', () => {
  const { sensors } = described(
    sensor.push('hook', {
      source: webhook({ path: 'orders', verify: 'standard', secret: ['NEW', 'OLD'], schema }),
      description: 'Orders that were corrected',
      timeout: '5s',
      maxTries: 7,
      select: orders,
      renamedFrom: 'old-hook',
      on,
    }),
    sensor.push('topic', {
      source: pubsub({ topic: 'projects/p/topics/t', audience: 'https://a.example', serviceAccount: 'p@x', schema }),
      enabled: false,
      on,
    }),
    sensor.poll('files', { every: '90s', minInterval: '1500ms', cursor: schema, poll: () => ({ runs: [] }) }),
    sensor.asset('late', { watch: orders, on }),
    sensor.asset('bad', { watch: ['orders'], happenings: ['check_failed', 'check_failed'], on }),
    sensor.run('alert', { states: ['FAILED'], on }),
    sensor.run('done', { states: ['SUCCEEDED'], watch: [orders], on }),
  )
  expect(sensors).toMatchObject([
    { ...common, name: 'alert', config: { type: 'run', states: ['FAILED'] } },
    { ...common, name: 'bad', config: { type: 'asset', assets: ['orders'], happenings: ['check_failed'] } },
    { ...common, name: 'done', config: { type: 'run', states: ['SUCCEEDED'], assets: ['orders'] } },
    { ...common, name: 'files', config: { type: 'poll', every_ms: 90_000 }, min_interval_sec: 2 },
    {
      ...common,
      name: 'hook',
      description: 'Orders that were corrected',
      config: { type: 'webhook', path: 'orders', verify: 'standard', secrets: ['NEW', 'OLD'] },
      timeout_ms: 5_000,
      max_tries: 7,
      asset_selection: ['orders'],
      renamed_from: 'old-hook',
    },
    { ...common, name: 'late', config: { type: 'asset', assets: ['orders'], happenings: ['materialized'] } },
    {
      ...common,
      name: 'topic',
      config: { type: 'pubsub', topic: 'projects/p/topics/t', audience: 'https://a.example', service_account: 'p@x' },
      enabled: false,
    },
  ])
  for (const one of sensors) checkSensor(one, (_, message) => expect.unreachable(message))
})

test('a schedule says whether code is asked at its ticks, and how long that may take', () => {
  const { schedules } = described(
    schedule('always', { cron: '@daily', select: orders }),
    schedule('open', { cron: '@daily', select: orders, when: () => true, timeout: '5s' }),
  )
  expect(schedules).toMatchObject([
    { name: 'always', has_condition: false },
    { name: 'open', has_condition: true, condition_timeout_ms: 5_000 },
  ])
})

test('[A34] two webhooks with one path are a problem of the project', () => {
  const source = webhook({ path: 'orders', verify: 'none', schema })
  const { manifest } = described(
    sensor.push('one', { source, on }),
    sensor.push('two', { source, on }),
    sensor.push('other', { source: webhook({ path: 'other', verify: 'none', schema }), on }),
  )
  expect(graphProblems(manifest)).toMatchObject([
    {
      code: 'duplicate_path',
      message: 'sensors one and two have the same webhook path: orders',
      file: 'describe-triggers.test.ts',
      line: expect.any(Number),
    },
  ])
})

test('[A34] an asset that a sensor watches or may run, and that there is not, is a problem of the project', () => {
  const { manifest } = described(
    sensor.asset('late', { watch: ['oders'], select: ['revenue'], on }),
    sensor.run('alert', { states: ['FAILED'], watch: 'gone', on }),
  )
  expect(graphProblems(manifest)).toMatchObject([
    { message: expect.stringContaining('sensor alert watches the unknown asset gone') },
    { message: expect.stringContaining('sensor late selects the unknown asset revenue') },
    { message: expect.stringContaining('sensor late watches the unknown asset oders'), hint: 'Did you mean orders?' },
  ])
})

test('a schedule of partitions that nothing it selects can have, or with an offset from no window, is a problem of the project', () => {
  const days = asset('days', { partitions: daily({ start: '2025-01-01' }), run: () => 1 })
  const regions = asset('regions', { partitions: keys(['eu', 'us']), run: () => 1 })
  const both = asset('both', {
    partitions: multi({ date: daily({ start: '2025-01-01' }), region: keys(['eu', 'us']) }),
    run: () => 1,
  })
  const problemsOf = (select: object, options: object) => {
    const one = schedule('s', { cron: '@daily', select: select as typeof orders, ...options })
    return scheduleProblems(described(days, regions, both, one).manifest)
  }
  for (const [select, partitions] of [
    [days, '2026-11-99'],
    [days, '2024-12-31'],
    [days, '2025-01-01..soon'],
    [regions, 'mars'],
    [both, '2025-01-01'],
    [both, 'date=2025-01-01,region=mars'],
    [both, 'day=2025-01-01'],
  ] as const) {
    expect(problemsOf(select, { partitions }), partitions).toMatchObject([
      { code: 'bad_partition', message: expect.stringContaining(partitions), line: expect.any(Number) },
    ])
  }
  for (const [select, partitions] of [
    [days, '2025-01-01'],
    [days, '2050-01-01'],
    [days, '2025-01-01..'],
    [regions, ['eu', 'us']],
    [both, 'date=2025-01-01..2025-01-31,region=eu'],
    [both, 'region=eu'],
    [[days, regions], 'eu'],
    [both, '*'],
  ] as const) {
    expect(problemsOf(select, { partitions }), String(partitions)).toEqual([])
  }
  expect(problemsOf(orders, { partitions: ['2026-11-01'] })).toMatchObject([
    { code: 'bad_partition', message: 'schedule s names partitions, but selects no asset with partitions' },
  ])
  expect(problemsOf(orders, { offset: 1 })).toMatchObject([
    { code: 'bad_schedule', message: expect.stringContaining('offset') },
  ])
  expect(problemsOf(regions, { offset: 1 })).toHaveLength(1)
  for (const select of [days, both]) expect(problemsOf(select, { offset: 1 })).toEqual([])
})
