import { describe, expect, test } from 'vitest'
import { assetRoutes } from '../../src/api/asset-routes.ts'
import { routerOf } from '../../src/api/routing/router.ts'
import type { AssetDefinitionInput } from '../../src/contract/project-manifest.ts'
import { dynamicPartitions } from '../../src/domain/partitions/dynamic-partitions.table.ts'
import { partitionStatus } from '../../src/domain/partitions/partition-status.table.ts'
import { SECOND_MS, toIso } from '../../src/lib/time.ts'
import { Assets } from '../../src/server/workspace/assets.ts'
import { knowledgeOf } from '../../src/server/workspace/knowledge.ts'
import { Statuses } from '../../src/server/workspace/status/statuses.ts'
import { statusSource } from '../../src/server/workspace/workspace.ts'
import { World, type WorldOptions } from './world.ts'

const source = { kind: 'source', io: 'parquet' } as const
const dynamic = { partitions: { type: 'dynamic', name: 'customers' } }
const daily = { partitions: { type: 'daily', start: '2025-12-18', timezone: 'UTC' } }
const cube = {
  partitions: {
    type: 'multi',
    dimensions: { date: daily.partitions, region: { type: 'keys', keys: ['eu', 'us'] } },
  },
}
const GRAPH: Record<string, Partial<AssetDefinitionInput>> = {
  'raw/orders': { ...source, ...daily, group: 'raw', description: 'Orders of a day' },
  'raw/customers': { ...source, group: 'raw' },
  'mart/sales': { ...cube, group: 'mart', deps: [{ asset_key: 'raw/orders' }] },
  'mart/report': { group: 'mart', deps: [{ asset_key: 'mart/sales' }, { asset_key: 'raw/customers' }] },
  'mart/by-customer': { ...dynamic, group: 'mart', inputs: { all: { asset_key: 'raw/customers' } } },
}

/** The routes over an orchestrator that knows these assets. */
async function opened(given: WorldOptions = {}, graph = GRAPH) {
  const world = await World.open(given)
  await world.define(graph)
  let ids = 0
  // No published tables to ask: everything these tests look for is in memory.
  const components = { ...world.components, ulid: () => `minted-${ids++}` }
  const call = async (method: string, path: string, body?: unknown) => {
    const known = knowledgeOf(components, world.orchestrator)
    const routes = assetRoutes(new Assets(known, new Statuses(statusSource(known))))
    const app = routerOf(routes, { callerOf: async () => ({ name: 'ada', role: 'operator' }) })
    const response = await app.request(`/api/v1/orchestration${path}`, {
      method,
      ...(body !== undefined && { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
    })
    return { status: response.status, body: (await response.json()) as Record<string, unknown> & never }
  }
  const status = (asset: string, partition = '') => world.orchestrator.loop.compactor.lookup(partitionStatus, asset, partition)
  const keys = async (): Promise<string[]> => {
    const { body } = await call('GET', '/partitions/sets/customers/keys')
    return (body['keys'] as { partition_key: string }[]).map(({ partition_key }) => partition_key)
  }
  return { world, call, status, keys, at: (path: string) => `/assets/${encodeURIComponent(path)}` }
}

describe('GET /assets', () => {
  test('lists every asset in the order of keys, with its partitions in words and numbers', async () => {
    const { call } = await opened()
    const { body, status } = await call('GET', '/assets')
    expect(status).toBe(200)
    expect((body['assets'] as { asset_key: string }[]).map(({ asset_key }) => asset_key)).toEqual(Object.keys(GRAPH).sort())
    expect((body['assets'] as unknown[])[4]).toEqual({
      asset_key: 'raw/orders',
      kind: 'source',
      group: 'raw',
      description: 'Orders of a day',
      partitions: { words: 'daily from 2025-12-18', count: 14, first: '2025-12-18', last: '2025-12-31' },
      upstream: 0,
      downstream: 1,
    })
  })

  test('takes selections, several of which mean all that any of them does', async () => {
    const { call } = await opened()
    const { body } = await call('GET', `/assets?select=${encodeURIComponent('+mart/sales')}&select=raw/customers`)
    expect(body).toMatchObject({ total: 3 })
    expect(body['assets']).toMatchObject([
      { asset_key: 'mart/sales' },
      { asset_key: 'raw/customers' },
      { asset_key: 'raw/orders' },
    ])
  })

  test('is paged: pages follow each other without a gap or a repetition', async () => {
    const { call } = await opened()
    const seen: string[] = []
    let path = '/assets?limit=2'
    for (let pages = 1; ; pages++) {
      const { body } = await call('GET', path)
      seen.push(...(body['assets'] as { asset_key: string }[]).map(({ asset_key }) => asset_key))
      if (body['next_cursor'] === null) {
        expect(pages).toBe(3)
        break
      }
      path = `/assets?limit=2&cursor=${body['next_cursor']}`
    }
    expect(seen).toEqual(Object.keys(GRAPH).sort())
  })

  test.each([
    ['an unknown asset', '/assets?select=mart/sale', 404, 'no_such_asset', 'Did you mean mart/sales?'],
    ['an invalid selection', '/assets?select=group:', 400, 'bad_selection', undefined],
    ['an invalid limit', '/assets?limit=0', 400, 'bad_query', undefined],
    ['a cursor from elsewhere', '/assets?cursor=%21', 400, 'bad_cursor', 'Pass next_cursor of the previous page'],
  ])('refuses %s', async (_, path, status, code, hint) => {
    const { call } = await opened()
    const answer = await call('GET', path)
    expect(answer).toMatchObject({ status, body: { code } })
    if (hint !== undefined) expect(answer.body['hint']).toContain(hint)
  })
})

describe('GET /assets/graph', () => {
  test('has every asset after those it is made from, and the edges between those that are selected', async () => {
    const { call } = await opened()
    const { body } = await call('GET', '/assets/graph?select=group:mart')
    expect((body['nodes'] as { asset_key: string }[]).map(({ asset_key }) => asset_key)).toEqual([
      'mart/by-customer',
      'mart/sales',
      'mart/report',
    ])
    expect(body['edges']).toEqual([{ from: 'mart/sales', to: 'mart/report' }])
  })

  test('is not in the way of an asset of that name', async () => {
    const { call } = await opened({}, { graph: {} })
    expect((await call('GET', '/assets/graph')).body).toHaveProperty('nodes')
    expect((await call('GET', '/assets/%2Fgraph')).body).toMatchObject({ definition: { asset_key: 'graph' } })
  })
})

describe('GET /assets/{key}', () => {
  test('tells how an asset was declared, what it is made from and which partitions of that', async () => {
    const { call, at } = await opened()
    const { body } = await call('GET', at('mart/sales'))
    expect(body).toMatchObject({
      asset: { partitions: { count: 28, first: 'date=2025-12-18,region=eu', last: 'date=2025-12-31,region=us' } },
      asset_id: 'id-mart/sales',
      upstream: [{ asset_key: 'raw/orders', input: null, words: expect.stringContaining('date') }],
      downstream: ['mart/report'],
      status: null,
      last_run: null,
    })
    expect((await call('GET', at('mart/by-customer'))).body).toMatchObject({ upstream: [{ input: 'all', words: null }] })
  })

  test('tells of an asset without partitions when it was made, by which run, and that it was wiped since', async () => {
    const { world, call, at } = await opened({}, { a: {} })
    const run_id = await world.request('r1')
    await world.clock.advance(SECOND_MS)
    expect((await call('GET', at('a'))).body).toMatchObject({
      status: { last_materialization_run_id: run_id, last_attempt_outcome: 'SUCCEEDED' },
      wiped: false,
      last_run: { run_id, state: 'SUCCEEDED' },
    })
    await call('POST', `${at('a')}/wipe`, { reason: 'wrong prices' })
    expect((await call('GET', at('a'))).body).toMatchObject({
      wiped: true,
      status: { wiped_by: 'ada', wiped_reason: 'wrong prices', last_materialization_run_id: run_id },
    })
  })
})

describe('POST /partitions/sets/{set}/keys', () => {
  const path = '/partitions/sets/customers/keys'

  test('[P6] adds and removes keys, and the partitions of assets follow', async () => {
    const { call, keys, world } = await opened()
    const added = await call('POST', path, { add: ['initech', 'acme'] })
    expect(added).toMatchObject({ status: 202, body: { added: 2, removed: 0, unchanged: 0, created: true } })
    await call('POST', path, { add: ['hooli'], remove: ['acme', 'nobody'] })
    expect(await keys()).toEqual(['hooli', 'initech'])
    expect([...world.orchestrator.graph.partitions().of('mart/by-customer').keys()]).toEqual(['hooli', 'initech'])
    expect(await world.problems()).toEqual([])
  })

  test('[P6] removing a key leaves the record of what was made for it, which counts again when the key is back', async () => {
    const { call, world, status, keys } = await opened({}, { 'mart/by-customer': dynamic })
    await call('POST', path, { add: ['acme'] })
    const run = await world.request('r1', '*', { partitions: ['acme'] })
    await world.clock.advance(SECOND_MS)
    const made = await status('mart/by-customer', 'acme')
    expect(made).toMatchObject({ last_materialization_run_id: run, last_attempt_outcome: 'SUCCEEDED' })
    const recorded = { ...made }
    await call('POST', path, { remove: ['acme'] })
    expect(await keys()).toEqual([])
    expect(await status('mart/by-customer', 'acme')).toEqual(recorded)
    await world.crash(SECOND_MS)
    await call('POST', path, { add: ['acme'] })
    expect(await status('mart/by-customer', 'acme')).toEqual(recorded)
  })

  test('changes nothing and says so when everything is as asked', async () => {
    const { call, world } = await opened()
    await call('POST', path, { add: ['acme'] })
    const row = () => world.orchestrator.loop.compactor.state.hot(dynamicPartitions).get('customers', 'acme')
    const before = { ...row() }
    await world.clock.advance(SECOND_MS)
    const again = await call('POST', path, { add: ['acme', 'acme'], remove: ['nobody'] })
    expect(again).toMatchObject({ status: 202, body: { unchanged: 2, created: false, accepted_event_id: null } })
    expect(row()).toEqual(before)
  })

  test('[P8] is one request however often it is made, also after somebody changed the same keys, and after a restart', async () => {
    const { call, keys, world } = await opened()
    const body = { add: ['acme'], request_id: 'r1' }
    expect((await call('POST', path, body)).body).toMatchObject({ created: true })
    await world.clock.advance(SECOND_MS)
    await call('POST', path, { remove: ['acme'] })
    await world.crash(SECOND_MS)
    expect((await call('POST', path, body)).body).toMatchObject({ created: false, added: 0 })
    expect(await keys()).toEqual([])
  })

  test('[P8] is one request also when it is made twice at once', async () => {
    const { call, keys } = await opened()
    const body = { add: ['acme'], request_id: 'r1' }
    const answers = await Promise.all([call('POST', path, body), call('POST', path, body)])
    expect(answers.map((answer) => answer.body['created']).sort()).toEqual([false, true])
    expect(await keys()).toEqual(['acme'])
  })

  test('[P8] is one request also when it would be cut into more events by now', async () => {
    const { call, world } = await opened()
    const many = Array.from({ length: 9_000 }, (_, i) => `customer-${i}`)
    const count = () => world.orchestrator.graph.partitions().of('mart/by-customer').count
    await call('POST', path, { add: many })
    expect((await call('POST', path, { add: [...many, 'acme'], request_id: 'r1' })).body).toMatchObject({ added: 1 })
    await call('POST', path, { remove: many })
    expect((await call('POST', path, { add: [...many, 'acme'], request_id: 'r1' })).body).toMatchObject({ created: false })
    expect(count()).toBe(1)
  })

  test('[P8] takes more keys than one event holds: they come in one segment, or not at all', async () => {
    const { call, world } = await opened()
    const many = Array.from({ length: 9_000 }, (_, i) => `customer-${i}`)
    expect((await call('POST', path, { add: many, request_id: 'r1' })).body).toMatchObject({ added: 9_000 })
    expect(world.orchestrator.graph.partitions().of('mart/by-customer').count).toBe(9_000)
    // Fewer of them are there now, so they would be cut differently.
    await call('POST', path, { remove: many.slice(1_000) })
    expect((await call('POST', path, { add: many, request_id: 'r1' })).body).toMatchObject({ created: false })
    expect(world.orchestrator.graph.partitions().of('mart/by-customer').count).toBe(1_000)
    const page = (await call('GET', `${path}?limit=10`)).body
    expect(page).toMatchObject({ total: 1_000, keys: { length: 10 } })
    expect((await call('GET', `${path}?limit=1000&cursor=${page['next_cursor']}`)).body).toMatchObject({
      keys: { length: 990 },
      next_cursor: null,
    })
  })

  test.each([
    ['an unknown set', '/partitions/sets/custmers/keys', { add: ['a'] }, 404, 'no_such_set', 'Did you mean customers?'],
    ['no key', path, {}, 400, 'no_keys', 'Name keys'],
    ['an empty key', path, { add: [''] }, 400, 'bad_body', 'another key', /"a key cannot be empty"/],
    ['a key of two lines', path, { add: ['a\nb'] }, 400, 'bad_body', 'another key', /it contains control characters/],
    ['a key that is too long', path, { add: ['x'.repeat(256)] }, 400, 'bad_body', 'another key', /x….* is too long: 256/],
    ['a key that means all', path, { add: ['*'] }, 400, 'bad_body', 'another key', /cannot be added: it stands for all/],
    [
      'a key that means a range',
      path,
      { add: ['a..b'] },
      400,
      'bad_body',
      'another key',
      /cannot be added: it contains .*\.\./,
    ],
    ['both at once', path, { add: ['a'], remove: ['a'] }, 400, 'bad_body', 'Choose one'],
    ['an unknown field', path, { ad: ['a'] }, 400, 'bad_body', ''],
  ])('[P6][P8] refuses %s, and nothing has changed', async (_, where, body, status, code, hint, why = /./) => {
    const { call, keys } = await opened()
    const answer = await call('POST', where, body)
    expect(answer).toMatchObject({ status, body: { code } })
    expect(answer.body['hint'] ?? '').toContain(hint)
    expect(JSON.stringify(answer.body)).toMatch(why)
    expect(await keys()).toEqual([])
  })

  test('[P7] keys that an attempt adds are there with its success, once however often it is told, and not with its failure', async () => {
    const partition_keys_added = [{ set_name: 'customers', keys: ['acme'] }]
    const failed = { category: 'user' as const, message: 'no', retryable: true }
    const { world, keys } = await opened(
      {
        script: ({ attempt }) =>
          attempt === 1
            ? { result: { outcome: 'FAILED', error: failed, partition_keys_added } }
            : { ms: 5_000, result: { outcome: 'SUCCEEDED', partition_keys_added } },
      },
      { crm: { retry: { max_attempts: 2, initial_ms: 1_000, jitter: false } }, by: dynamic },
    )
    const run = await world.request('r1', 'crm')
    await world.clock.advance(SECOND_MS / 2)
    expect(await keys()).toEqual([])
    await world.clock.advance(10 * SECOND_MS)
    expect(world.run(run)?.state).toBe('SUCCEEDED')
    expect(await keys()).toEqual(['acme'])
    await world.crash()
    expect(await keys()).toEqual(['acme'])
    expect(await world.problems()).toEqual([])
  })
})

describe('POST /assets/{key}/materializations', () => {
  test('records that an asset, or every partition of a range, was made elsewhere', async () => {
    const { call, at, status, world } = await opened()
    const one = await call('POST', `${at('raw/customers')}/materializations`, { code_version: 'v7' })
    expect(one).toMatchObject({ status: 202, body: { partitions: { count: 1 }, created: true } })
    expect(await status('raw/customers')).toMatchObject({
      last_materialization_at: world.clock.now(),
      last_materialization_run_id: null,
      last_materialization_code_version: 'v7',
    })
    const range = { partition: 'date=2025-12-18..2025-12-20', materialized_at: '2025-12-22T00:00:00Z', metadata: { rows: 3 } }
    const several = await call('POST', `${at('mart/sales')}/materializations`, range)
    const first = 'date=2025-12-18,region=eu'
    expect(several.body).toMatchObject({ partitions: { count: 6, first, last: 'date=2025-12-20,region=us' } })
    expect(await status('mart/sales', first)).toMatchObject({
      partition_values: { date: '2025-12-18', region: 'eu' },
      last_materialization_at: Date.UTC(2025, 11, 22),
    })
    expect(await world.problems()).toEqual([])
  })

  test('[P8] is one report however often it is made', async () => {
    const { call, at, status, world } = await opened()
    const body = { partition: '2025-12-19', report_id: 'export-7' }
    await call('POST', `${at('raw/orders')}/materializations`, body)
    const before = await status('raw/orders', '2025-12-19')
    await world.clock.advance(SECOND_MS)
    const again = await call('POST', `${at('raw/orders')}/materializations`, body)
    expect(again.body).toMatchObject({ created: false, accepted_event_id: null })
    expect(await status('raw/orders', '2025-12-19')).toEqual(before)
  })

  test('of a clock that is a little ahead means now', async () => {
    const { call, at, status, world } = await opened()
    const materialized_at = toIso(world.clock.now() + 5 * SECOND_MS)
    await call('POST', `${at('raw/customers')}/materializations`, { materialized_at })
    expect((await status('raw/customers'))?.last_materialization_at).toBe(world.clock.now())
  })

  test.each([
    ['an unknown asset', 'raw/order', {}, 404, 'no_such_asset', /Did you mean raw\/orders/],
    [
      'no partition',
      'raw/orders',
      {},
      400,
      'partitions_wanted',
      /Name them: --partition 2025-12-31, --partition latest, or a range/,
    ],
    ['a partition that is not there yet', 'raw/orders', { partition: '2026-01-01' }, 404, 'no_such_partition', /./],
    ['a partition of something else', 'raw/orders', { partition: 'eu' }, 404, 'no_such_partition', /./],
    ['a partition where there is none', 'mart/report', { partition: 'eu' }, 400, 'no_partitions', /Remove the partition/],
    ['an unknown dimension', 'mart/sales', { partition: 'shop=eu' }, 400, 'bad_partition_key', /date, region/],
    ['the future', 'raw/customers', { materialized_at: '2026-01-03T00:00:00Z' }, 400, 'in_the_future', /omit it/],
    ['times of old', 'raw/customers', { materialized_at: '1969-12-31T23:59:59Z' }, 400, 'before_1970', /omit it/],
    ['an invalid moment', 'raw/customers', { materialized_at: 'today' }, 400, 'bad_body', /./],
    ['two ways to name', 'raw/orders', { partition: '2025-12-18', partitions: ['2025-12-19'] }, 400, 'bad_body', /one of them/],
  ])('[P8] refuses %s, and nothing is recorded', async (_, asset, body, status, code, hint) => {
    const { call, at, world } = await opened()
    const answer = await call('POST', `${at(asset)}/materializations`, body)
    expect(answer).toMatchObject({ status, body: { code } })
    expect(answer.body['hint']).toMatch(hint)
    expect(world.orchestrator.loop.compactor.state.coldTable(partitionStatus).recent.size).toBe(0)
  })

  test('refuses more partitions than one request may name', async () => {
    const minutely = { partitions: { type: 'minutely', start: '2025-12-18T00:00', timezone: 'UTC' } }
    const { call, at } = await opened({}, { m: { ...source, ...minutely } })
    const answer = await call('POST', `${at('m')}/materializations`, { partition: '*' })
    expect(answer).toMatchObject({ status: 400, body: { code: 'too_many_partitions' } })
  })
})

describe('POST /assets/{key}/wipe', () => {
  test('[P9] lets partitions count as never made, and what is made of them is refused until they are made again', async () => {
    const { world, call, at } = await opened({}, { a: {}, b: { inputs: { a: { asset_key: 'a' } } } })
    await world.request('r1', 'a')
    await world.clock.advance(SECOND_MS)
    await call('POST', `${at('a')}/wipe`, {})
    const refused = await world.request('r2', 'b')
    await world.clock.advance(SECOND_MS)
    expect(world.task(refused, 'b')?.error_message).toMatch(/b needs a \(its input a\), which was never materialized/)
    await world.request('r3', 'a')
    await world.clock.advance(SECOND_MS)
    const made = await world.request('r4', 'b')
    await world.clock.advance(SECOND_MS)
    expect(world.run(made)?.state).toBe('SUCCEEDED')
  })

  test('only tells what would be wiped when that is the question', async () => {
    const { call, at, status } = await opened()
    const answer = await call('POST', `${at('raw/orders')}/wipe`, { partitions: ['2025-12-19..', '2025-12-20'], dry_run: true })
    expect(answer).toMatchObject({
      status: 200,
      body: { partitions: { count: 13, first: '2025-12-19', last: '2025-12-31' }, created: false, accepted_event_id: null },
    })
    expect(await status('raw/orders', '2025-12-19')).toBeUndefined()
  })

  test('[P8][P9] is one wipe however often it is asked for: what was made since is not wiped again', async () => {
    const { call, at, status, world } = await opened()
    const body = { partitions: ['2025-12-19'], request_id: 'w1', reason: 'wrong zone' }
    await call('POST', `${at('raw/orders')}/wipe`, body)
    const before = await status('raw/orders', '2025-12-19')
    await world.clock.advance(SECOND_MS)
    expect((await call('POST', `${at('raw/orders')}/wipe`, body)).body).toMatchObject({ created: false })
    expect(await status('raw/orders', '2025-12-19')).toEqual(before)
    expect(before).toMatchObject({ wiped_by: 'ada', wiped_reason: 'wrong zone' })
  })

  test('needs the partitions of an asset that has some; * means all', async () => {
    const { call, at } = await opened()
    const answer = await call('POST', `${at('raw/orders')}/wipe`, {})
    expect(answer).toMatchObject({ status: 400, body: { code: 'partitions_wanted' } })
    const all = await call('POST', `${at('raw/orders')}/wipe`, { partitions: ['*'] })
    expect(all.body).toMatchObject({ partitions: { count: 14 } })
  })
})
