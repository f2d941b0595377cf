import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type AssetDefinitionInput, assetDefinition } from '../../contract/project-manifest.ts'
import { RunStory, Story } from '../../testing/histories/story.ts'
import { AssetGraph } from '../assets/graph.ts'
import { GraphMappings } from '../assets/graph-mappings.ts'
import { GraphPartitions } from '../assets/graph-partitions.ts'
import { PlanCreated } from '../tasks/plan-created.event.ts'
import { planRun, type RunToPlan } from './plan.ts'
import { rerunSelection, workFor } from './rerun.ts'

const LONG = 'x'.repeat(510)
const letters = { partitions: { type: 'keys', keys: ['a', 'b', 'c', LONG] } }
const define = (key: string, deps: readonly string[] = [], rest: Partial<AssetDefinitionInput> = {}) =>
  assetDefinition.parse({ asset_key: key, kind: 'asset', deps: deps.map((asset_key) => ({ asset_key })), ...rest })

const assets = (parts: Partial<AssetDefinitionInput>) => [
  define('raw', [], { kind: 'source' }),
  define('orders', ['raw'], parts),
  define('cleaned', ['orders'], parts),
  define('rates'),
  define('revenue', ['cleaned', 'rates'], parts),
  define('report', ['revenue']),
]
const graph = new AssetGraph(assets({}))
const parted = new AssetGraph(assets(letters))
/** When all days of January 2025 have closed, and no day of February. */
const nowMs = Date.UTC(2025, 1, 1)
const run: RunToPlan = { run_id: 'run_1', asset_selection: ['*'], partition_selection: null, priority: 0 }

function plan(asked: Partial<RunToPlan>, assets = graph) {
  const partitions = new GraphPartitions(new GraphMappings(assets), { nowMs, dynamicKeys: () => ['ada', 'bob'] })
  const planned = planRun({ run: { ...run, ...asked }, graph: assets, graphVersion: 'g1', partitions })
  if ('error' in planned) return planned.error
  return planned.events
}
function edges(asked: Partial<RunToPlan>, assets = graph) {
  const parts = plan(asked, assets)
  if (typeof parts === 'string') return parts
  return Object.fromEntries(parts.flatMap(({ tasks }) => tasks.map((task) => [task.task_key, task.depends_on])))
}

describe('a plan', () => {
  test('has a task for every selected asset that can be made, and edges between them', () => {
    expect(edges({})).toEqual({
      orders: [],
      cleaned: ['orders'],
      rates: [],
      revenue: ['cleaned', 'rates'],
      report: ['revenue'],
    })
  })

  test('takes keys and expressions together; what lies between selected assets is not looked through', () => {
    expect(edges({ asset_selection: ['orders', 'key:"rep*"', '1+revenue'] })).toEqual({
      orders: [],
      cleaned: ['orders'],
      rates: [],
      revenue: ['cleaned', 'rates'],
      report: ['revenue'],
    })
    expect(edges({ asset_selection: ['orders', 'revenue'] })).toEqual({ orders: [], revenue: [] })
  })

  test('of partitions has a task for each, waiting for the same partition above it', () => {
    const asked = { asset_selection: ['+report'], partition_selection: ['b', 'a', 'b'] }
    expect(edges(asked, parted)).toEqual({
      'orders[a]': [],
      'orders[b]': [],
      'cleaned[a]': ['orders[a]'],
      'cleaned[b]': ['orders[b]'],
      rates: [],
      'revenue[a]': ['cleaned[a]', 'rates'],
      'revenue[b]': ['cleaned[b]', 'rates'],
      report: ['revenue[b]', 'revenue[a]'],
    })
    const [part] = plan({ asset_selection: ['orders', 'rates'], partition_selection: ['a'] }, parted) as { tasks: unknown[] }[]
    expect(part?.tasks).toMatchObject([{ asset_key: 'orders', partition_key: 'a' }, { asset_key: 'rates' }])
    expect(part?.tasks[1]).not.toHaveProperty('partition_key')
  })

  test('of single partitions makes exactly those', () => {
    expect(edges({ asset_selection: ['orders[a]', 'cleaned[a]', 'cleaned[b]', 'report'] }, parted)).toEqual({
      'orders[a]': [],
      'cleaned[a]': ['orders[a]'],
      'cleaned[b]': [],
      report: [],
    })
  })

  test('carries what the worker and the retry policy need, and nothing that nobody set', () => {
    const retry = { max_attempts: 3 }
    const inputs = { orders: { asset_key: 'orders' } }
    const revenue = define('revenue', [], {
      inputs,
      retry,
      timeout_sec: 60,
      pool: 'db',
      priority: 7,
      io: 'parquet',
      kind: 'table',
    })
    const [part] = plan({ priority: 995 }, new AssetGraph([define('orders'), revenue])) as { tasks: unknown[] }[]
    expect(part?.tasks).toEqual([
      {
        task_key: 'orders',
        asset_key: 'orders',
        depends_on: [],
        max_attempts: 1,
        priority: 995,
        spec: { kind: 'asset', io: 'json' },
      },
      {
        task_key: 'revenue',
        asset_key: 'revenue',
        depends_on: ['orders'],
        max_attempts: 3,
        timeout_sec: 60,
        pool: 'db',
        priority: 1_000,
        spec: { kind: 'table', io: 'parquet', inputs, retry: revenue.retry },
      },
    ])
  })

  test('has the same id when it is made again, and another one for other work', () => {
    const idOf = (asked: Partial<RunToPlan>) => (plan(asked) as { plan_id: string }[])[0]?.plan_id
    expect(idOf({})).toBe(idOf({ asset_selection: ['report', 'key:"*"'] }))
    expect(new Set([idOf({}), idOf({ run_id: 'run_2' }), idOf({ asset_selection: ['orders'] })]).size).toBe(3)
  })

  test('is folded as it is, and begins with what waits for nothing', () => {
    const story = new Story()
    const requested = new RunStory(story, 'report')
    requested.requested(['*'])
    for (const part of plan({ run_id: requested.runId }) as Parameters<typeof PlanCreated.fold>[0]['payload'][]) {
      expect(story.tell(PlanCreated, part)).toEqual({ kind: 'applied' })
    }
    expect(requested.states).toEqual({
      orders: 'READY',
      cleaned: 'BLOCKED',
      rates: 'READY',
      revenue: 'BLOCKED',
      report: 'BLOCKED',
    })
  })

  test('of 100,000 tasks is made in parts that each fit into an event', () => {
    const chain = Array.from({ length: 100_000 }, (_, i) => ({
      ...define('a'),
      asset_key: `warehouse/table_${i}`,
      deps: i === 0 ? [] : [{ asset_key: `warehouse/table_${i - 1}` }],
    }))
    const parts = plan({}, new AssetGraph(chain)) as { tasks: unknown[]; parts: number; part: number }[]
    expect(parts.map(({ tasks }) => tasks.length)).toEqual(Array(50).fill(2_000))
    expect(parts.map(({ part }) => part)).toEqual([...Array(50).keys()])
    for (const part of parts) expect(JSON.stringify(part).length).toBeLessThan(1 << 20)
  })

  test('of one task that waits for 100,000 others fits into events, and is folded in any order of its parts', () => {
    const keys = Array.from({ length: 100_000 }, (_, i) => `partition-number-${i}`)
    const wide = new AssetGraph([define('up', [], { partitions: { type: 'keys', keys } }), define('down', ['up'])])
    const story = new Story()
    const requested = new RunStory(story, 'wide')
    requested.requested(['*'])
    const asked = { run_id: requested.runId, partition_selection: ['*'] }
    const parts = plan(asked, wide) as Parameters<typeof PlanCreated.fold>[0]['payload'][]
    for (const part of parts) expect(JSON.stringify(part).length).toBeLessThan(1 << 20)
    for (const part of parts.toReversed()) expect(story.tell(PlanCreated, part)).toEqual({ kind: 'applied' })
    expect(requested.row).toMatchObject({ tasks_total: 100_001, error: null })
    requested.done('up[partition-number-0]', 'up[partition-number-99999]')
    expect(requested.task('down')).toMatchObject({ state: 'BLOCKED', deps_total: 100_000, deps_satisfied_count: 2 })
  })

  test('of large tasks has fewer of them in a part', () => {
    const inputs = Object.fromEntries(
      Array.from({ length: 100 }, (_, i) => [`input_${i}_${'x'.repeat(200)}`, { asset_key: 'a' }]),
    )
    const wide = Array.from({ length: 100 }, (_, i) => define(`b${i}`, [], { inputs }))
    const parts = plan({}, new AssetGraph([define('a'), ...wide])) as object[]
    expect(parts.length).toBeGreaterThan(2)
    for (const part of parts) expect(JSON.stringify(part).length).toBeLessThan(950_000)
  })

  test('never has an edge to a task it does not have, and every task once', () => {
    const selections = fc.uniqueArray(
      fc.constantFrom('orders', '+revenue', 'cleaned[a]', 'cleaned[b]', 'revenue[b]', 'report', 'rates+', 'roots(*)'),
      { minLength: 1 },
    )
    const property = fc.property(selections, fc.subarray(['a', 'b', 'c'], { minLength: 1 }), (asked, keys) => {
      const parts = plan({ asset_selection: asked, partition_selection: keys }, parted) as Exclude<
        ReturnType<typeof plan>,
        string
      >
      const tasks = parts.flatMap((part) => part.tasks)
      const seen = new Set<string>()
      for (const task of tasks) {
        expect(seen.has(task.task_key)).toBe(false)
        // Tasks come after what they wait for, so an edge never leads forward or outside.
        for (const upstream of task.depends_on ?? []) expect(seen).toContain(upstream)
        seen.add(task.task_key)
      }
    })
    fc.assert(property)
  })
})

describe('what cannot be planned says what to do', () => {
  test.each<[string, Partial<RunToPlan>, string]>([
    ['an unknown asset', { asset_selection: ['ordres'] }, 'asset ordres not found. Did you mean orders?'],
    [
      'an unknown asset like no other',
      { asset_selection: ['orders', 'something/else'] },
      'asset something/else not found. Run servo assets list to see all assets.',
    ],
    ['an unknown asset with a partition', { asset_selection: ['order[a]'] }, 'asset order not found. Did you mean orders?'],
    [
      'only sources',
      { asset_selection: ['raw'] },
      'raw is a source, which is materialized elsewhere. Select its downstream assets, for example key:"raw"+.',
    ],
    [
      'nothing',
      { asset_selection: ['tag:x', 'kind:y'] },
      'tag:x, kind:y selects no asset; the project has 6 assets. Check keys, tags and groups for spelling.',
    ],
    [
      'a partition of what has none',
      { asset_selection: ['rates[a]'] },
      'rates has no partitions. Request rates without a partition.',
    ],
  ])('%s', (_, asked, error) => {
    expect(plan(asked)).toBe(error)
  })

  test('a selection that cannot be read', () => {
    expect(plan({ asset_selection: ['key:orders and'] })).toMatch(/^the selection cannot be read at position 15: expected/)
  })

  test('a project without assets', () => {
    expect(plan({}, new AssetGraph([]))).toBe('the project has no assets. Declare one, or load another project.')
  })

  test('names that would be too long', () => {
    expect(plan({ asset_selection: ['orders'], partition_selection: [LONG] }, parted)).toMatch(/Shorten the partition key/)
  })
})

describe('a rerun', () => {
  const tasks = [
    { asset_key: 'orders', partition_key: 'a', state: 'SUCCEEDED' },
    { asset_key: 'orders', partition_key: 'b', state: 'FAILED' },
    { asset_key: 'cleaned', partition_key: 'b', state: 'SKIPPED' },
    { asset_key: 'rates', partition_key: null, state: 'CANCELLED' },
    { asset_key: 'report', partition_key: null, state: 'BLOCKED' },
  ] as const

  test('from failure makes whatever did not succeed, tried or not, and exactly those partitions', () => {
    const pairs = rerunSelection(tasks, { mode: 'from_failure' })
    expect(pairs).toEqual([
      { asset_key: 'orders', partition_key: 'b' },
      { asset_key: 'cleaned', partition_key: 'b' },
      { asset_key: 'rates', partition_key: null },
      { asset_key: 'report', partition_key: null },
    ])
    expect(edges(workFor(pairs), parted)).toEqual({ 'orders[b]': [], 'cleaned[b]': ['orders[b]'], rates: [], report: [] })
  })

  test('of all makes everything, of a subset what the selection means', () => {
    expect(rerunSelection(tasks, { mode: 'all' })).toHaveLength(5)
    expect(rerunSelection(tasks, { mode: 'subset', selection: 'orders+1', graph })).toEqual([
      { asset_key: 'orders', partition_key: 'a' },
      { asset_key: 'orders', partition_key: 'b' },
      { asset_key: 'cleaned', partition_key: 'b' },
    ])
  })
})
