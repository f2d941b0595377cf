import { stripVTControlCharacters } from 'node:util'
import { describe, expect, test } from 'vitest'
import type { ConflictQuery } from '../../../src/api/automation/why-contract.ts'
import type { WorkspaceApi } from '../../../src/api/workspace-contract.ts'
import { conflictLines } from '../../../src/cli/show-conflict.ts'
import { evalIdOf, runKeyOfEvaluation } from '../../../src/domain/sensors/evaluation-ids.ts'
import { SensorDefined } from '../../../src/domain/sensors/sensor-defined.event.ts'
import { SensorEvaluated } from '../../../src/domain/sensors/sensor-evaluated.event.ts'
import type { WhyKind } from '../../../src/domain/why/reasons.ts'
import { whyInWords } from '../../../src/domain/why/words.ts'
import { MINUTE_MS, SECOND_MS, toIso } from '../../../src/lib/time.ts'
import { newEvent } from '../../../src/model/event.ts'
import { knowledgeOf } from '../../../src/server/workspace/knowledge.ts'
import { runRequested } from '../../../src/server/workspace/requests.ts'
import { workspaceApi } from '../../../src/server/workspace/workspace.ts'
import { Led } from '../led.ts'
import { failure, scope, World, type WorldOptions } from '../world.ts'

const secret = { id: 'secret-1', value: 'not a secret' }

/** A workspace whose questions are answered as a server answers them. */
async function open(graph: Parameters<World['define']>[0], given: WorldOptions = {}, pools: Record<string, number> = {}) {
  const world = await World.open(given)
  await world.define(graph, pools)
  const api: WorkspaceApi = workspaceApi(knowledgeOf(world.components, world.orchestrator), { runIds: () => secret })
  const say = async (kind: WhyKind, name: string, query = {}): Promise<string[]> =>
    whyInWords(await api.whys.why(kind, name, query), 'UTC').map(
      ({ depth, text }) => '  '.repeat(depth) + text.replace(/\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?/g, 'T'),
    )
  return { world, api, say }
}

/** A message to the sensor `orders-webhook`, and the run it asks for. */
async function deliver(
  world: World,
  messageId: string,
  more: { partitions?: string[]; key?: string; body?: string; labels?: Record<string, string>; priority?: number } = {},
) {
  const { partitions, key, body = 'a', labels = {}, priority = 0 } = more
  const source = { source: 'push', message_id: messageId, try: 1, body_hash: body, body_size: 4, max_tries: 5 } as const
  const begun = `${messageId}${body}`
  const run_key = runKeyOfEvaluation('hook', source, 0, key)
  const evaluated = { sensor_id: 'hook', trigger_source: source, begun, status: 'triggered' as const, run_keys: [run_key] }
  const { run_id, event } = runRequested(scope, secret, {
    run_key,
    asset_selection: ['a'],
    partition_selection: partitions ?? null,
    labels,
    priority,
    source: { type: 'sensor', sensor_id: 'hook', eval_id: evalIdOf('hook', source, begun) },
  })
  await world.orchestrator.submit([newEvent(SensorEvaluated, evaluated), event])
  return run_id
}

const hook = newEvent(SensorDefined, {
  sensor_id: 'hook',
  sensor_name: 'orders-webhook',
  config: { type: 'webhook', path: 'orders', verify: 'none' },
  definition_hash: 'h',
  request_id: 'r',
})

describe('why a run', () => {
  test('[A63] succeeded or failed, and who asked for it', async () => {
    const { world, say } = await open(
      { a: [], b: ['a'], c: ['b'] },
      { script: ({ run_id: _, ...envelope }) => (envelope.task_key === 'b' ? { result: failure({ retryable: false }) } : {}) },
    )
    const run = await world.request('r1')
    await world.clock.advance(SECOND_MS)
    expect(await say('run', run)).toEqual([
      `${run} failed: b failed at T: it broke`,
      '  1 task was skipped because of b',
      '  because tester requested it at T',
      '  it materializes *',
    ])
    const good = await world.request('r2', 'a')
    await world.clock.advance(SECOND_MS)
    expect((await say('run', good.slice(0, 14)))[0]).toBe(`${good} succeeded: its task succeeded at T`)
  })

  test('[A63] waits: for a pool, a worker, a task, a retry', async () => {
    const retry = { max_attempts: 3, backoff: 'fixed', initial_ms: 60_000, max_ms: 60_000, jitter: false } as const
    const { world, say } = await open(
      { a: { pool: 'db' }, b: { pool: 'db' }, c: ['a'], d: { retry } },
      { script: ({ task_key }) => (task_key === 'd' ? { result: failure() } : { ms: 10 * MINUTE_MS }) },
      { db: 1 },
    )
    const run = await world.request('r1')
    await world.clock.advance(SECOND_MS)
    const said = await say('run', run)
    expect(said[0]).toMatch(new RegExp(`^${run} is running: a has been running since T`))
    expect(said.slice(1, 4)).toEqual([
      '  d failed at attempt 1 and will be retried at T: it broke',
      '  b waits for the pool db: its only slot is in use',
      '  c waits for a (running)',
    ])
    const busy = await open({ a: [], b: [] }, { capacity: 1, script: () => ({ ms: MINUTE_MS }) })
    const many = await busy.world.request('r1')
    await busy.world.clock.advance(SECOND_MS)
    expect((await busy.say('run', many)).join('\n')).toMatch(
      /(waits for a free worker of the queue default|has been waiting since T for a worker)/,
    )
  })

  test('[A63] begins after another, and was cancelled, and why', async () => {
    const { world, api, say } = await open({ a: [] }, { script: () => ({ ms: MINUTE_MS }) })
    const first = await world.request('r1')
    const { run_id, event } = runRequested(scope, secret, {
      run_key: 'manual:r2',
      asset_selection: ['a'],
      source: { type: 'manual', user_id: 'ana', request_id: 'r2' },
      after_run_ids: [first],
    })
    await world.orchestrator.submit([event])
    expect((await say('run', run_id))[0]).toBe(`${run_id} waits: it starts when ${first} has ended`)
    await api.runs.cancel(run_id, 'bo', 'not needed')
    expect((await say('run', run_id)).slice(0, 2)).toEqual([
      `${run_id} was cancelled: bo cancelled it at T: not needed`,
      '  because ana requested it at T',
    ])
  })

  test('[A63] succeeded although it was cancelled, and who cancelled it', async () => {
    const { world, api, say } = await open({ a: [] }, { script: () => ({ ms: SECOND_MS, deaf: true }) })
    const run = await world.request('r1')
    await api.runs.cancel(run, 'bo', 'replaced by another')
    await world.clock.advance(MINUTE_MS)
    expect((await say('run', run)).slice(0, 2)).toEqual([
      `${run} succeeded: its task succeeded at T`,
      '  bo cancelled it at T, too late to stop it: replaced by another',
    ])
  })

  test('[A63] is a rerun: who asked for the first one', async () => {
    const { world, api, say } = await open({ a: [] }, { script: () => ({ result: failure({ retryable: false }) }) })
    await world.orchestrator.submit([hook])
    const first = await deliver(world, 'm_17')
    await world.clock.advance(SECOND_MS)
    const { run_id } = await api.runs.rerun(first, { mode: 'all' }, 'ana')
    const said = await say('run', run_id)
    expect(said).toContain(`  because it reruns all of ${first}, requested at T`)
    expect(said).toContain('    because sensor orders-webhook requested it at T (message m_17)')
  })
})

describe('why an asset', () => {
  test('[A64] ran: the sensor, the message and the run that made it', async () => {
    const daily = { type: 'daily', start: '2025-12-18', timezone: 'UTC' } as const
    const { world, say } = await open({ a: { partitions: daily }, z: [] })
    await world.orchestrator.submit([hook])
    const today = new Date(world.clock.now() - 86_400_000).toISOString().slice(0, 10)
    const run = await deliver(world, 'm_17', { partitions: [today] })
    await world.clock.advance(SECOND_MS)
    const said = await say('asset', 'a', { partition: today })
    expect(said.slice(0, 2)).toEqual([
      `a[${today}] ran because sensor orders-webhook requested it at T (message m_17)`,
      `  last materialized at T by ${run}`,
    ])
    expect(said).toContain('  the sensor orders-webhook may run any asset')
    expect((await say('asset', 'a'))[0]).toMatch(/^a is stale: 1 of \d+ partitions is up to date, \d+ were never materialized$/)
    expect((await say('asset', 'z'))[0]).toMatch(/^z was never materialized: the sensor orders-webhook may run any asset/)
  })

  test('[A64] is stale or failed: the cause, and what would run it', async () => {
    let isBad = false
    const { world, say } = await open(
      { a: [], b: ['a'] },
      { script: ({ task_key }) => (task_key === 'b' && isBad ? { result: failure({ retryable: false }) } : {}) },
    )
    await world.request('r1')
    await world.clock.advance(SECOND_MS)
    expect((await say('asset', 'b')).at(-1)).toBe('  no schedule and no sensor runs it')
    await world.request('r2', 'a')
    await world.clock.advance(SECOND_MS)
    expect((await say('asset', 'b'))[0]).toMatch(/^b is stale: a was materialized again at T/)
    isBad = true
    const bad = await world.request('r3', 'b')
    await world.clock.advance(SECOND_MS)
    expect((await say('asset', 'b')).slice(0, 2)).toEqual([
      `b is stale: the last attempt failed at T in ${bad}: it broke`,
      '  because tester requested it at T',
    ])
  })

  test('[A64] was never made, because its upstream failed', async () => {
    const script = () => ({ result: failure({ retryable: false }) })
    const { world, say } = await open({ a: [], b: ['a'] }, { script })
    expect((await say('asset', 'b'))[0]).toBe('b was never materialized: a was never materialized (a → b)')
    await world.request('r1')
    await world.clock.advance(SECOND_MS)
    expect((await say('asset', 'b'))[0]).toBe('b was never materialized: a failed and was never materialized (a → b)')
  })
})

describe('conflicts', () => {
  test('[A65] over run keys and messages are one list, the newest first, page by page', async () => {
    const { world, api } = await open({ a: [], b: [] })
    await world.orchestrator.submit([hook])
    await deliver(world, 'm_1', { key: 'k' })
    await world.clock.advance(MINUTE_MS)
    await deliver(world, 'm_1', { body: 'b' })
    await world.clock.advance(MINUTE_MS)
    await world.request('r1', 'a')
    await world.clock.advance(MINUTE_MS)
    const between = toIso(world.clock.now())
    await world.request('r1', 'b')
    const list = (query: Partial<ConflictQuery> = {}) => api.whys.conflicts({ limit: 50, ...query })
    const { conflicts, next_cursor } = await list()
    expect(next_cursor).toBeNull()
    expect(conflicts).toMatchObject([
      {
        kind: 'run_key',
        run_key: 'manual:r1',
        first: { assets: ['a'], origin: { code: 'asked_by_user', facts: { user: 'tester' } } },
        later: { assets: ['b'] },
        advice: expect.stringContaining('--key'),
      },
      {
        kind: 'message',
        sensor_name: 'orders-webhook',
        message_id: 'm_1',
        first: { body_hash: 'a' },
        later: { body_hash: 'b' },
      },
    ])
    const first = await list({ limit: 1 })
    await world.request('r1', '*')
    const second = await list({ limit: 1, cursor: first.next_cursor ?? '' })
    expect([...first.conflicts, ...second.conflicts]).toEqual(conflicts)
    expect(second.next_cursor).toBeNull()
    expect((await list({ until: between })).conflicts).toEqual(conflicts.slice(1))
    expect((await list({ since: between, limit: 50 })).conflicts.map(({ kind }) => kind)).toEqual(['run_key', 'run_key'])
    await expect(list({ cursor: 'x' })).rejects.toMatchObject({ code: 'bad_cursor' })
  })
})

test('[A65] a conflict over labels or priority alone shows them, with the key and the sensor as people call them', async () => {
  const { world, api } = await open({ a: [] })
  await world.orchestrator.submit([hook])
  await deliver(world, 'm_1', { key: 'order 7', labels: { team: 'shop' } })
  await deliver(world, 'm_2', { key: 'order 7', priority: 3 })
  const { conflicts } = await api.whys.conflicts({ limit: 50 })
  expect(conflicts).toMatchObject([
    {
      run_key: 'sensor:hook:key:order%207',
      key: 'order 7',
      sensor_name: 'orders-webhook',
      differs: ['labels', 'priority'],
      first: { labels: { team: 'shop' }, label_count: 1, priority: 0 },
      later: { labels: {}, label_count: 0, priority: 3 },
    },
  ])
  const lines = conflicts.flatMap((conflict) => conflictLines(conflict, 'UTC')).map((line) => stripVTControlCharacters(line))
  expect(lines[0]).toMatch(/ {2}key order 7 of orders-webhook {2}sensor:hook:key:order%207$/)
  expect(lines[1]).toMatch(/^ {2}first .*message m_1.*: a, labels team=shop, priority 0, as run_/)
  expect(lines[2]).toMatch(/^ {2}then .*message m_2.*: a, no labels, priority 3$/)
  expect(lines[3]).toBe('  different labels, priority')

  const long = (end: string) => ({ key: 'long', labels: { note: 'x'.repeat(1_000) + end } })
  await world.clock.advance(MINUTE_MS)
  await deliver(world, 'm_3', long('a'))
  await deliver(world, 'm_4', long('b'))
  expect((await api.whys.conflicts({ limit: 1 })).conflicts).toMatchObject([{ key: 'long', differs: ['labels'] }])
})

describe('the routes', () => {
  const project = {
    assets: [{ asset_key: 'orders', kind: 'asset' as const }],
    schedules: [{ name: 'nightly', cron_expressions: ['0 5 * * *'], asset_selection: ['orders'] }],
  }

  test.each([
    ['/why/schedule/nigtly', 404, 'no_such_schedule', 'Did you mean nightly?'],
    [
      '/why/sensor/inbox',
      404,
      'no_such_sensor',
      '`servo sensors list` lists all sensors. Those that the project declares are on record once servo dev has started.',
    ],
    ['/why/run/run_aaaa', 404, 'no_such_run', '`servo runs list` lists the newest runs.'],
    ['/why/asset/order', 404, 'no_such_asset', 'Did you mean orders?'],
    ['/why/shedule/nightly', 404, 'no_such_kind', 'Did you mean schedule?'],
    ['/why/schedule/nightly?at=noon', 400, 'bad_moment', expect.stringContaining('05:00')],
    ['/why/asset/orders?at=05:00', 400, 'bad_query', 'Remove it, or pass partition.'],
    ['/why/asset/orders?colour=red', 400, 'bad_query', 'This route takes at, partition, message.'],
    ['/conflicts?limit=0', 400, 'bad_query', undefined],
  ])('[A61][A65] GET %s is refused with %d %s', async (path, status, code, hint) => {
    const led = await Led.open(project, { automation: true })
    const answer = await led.get(path)
    expect([answer.status, answer.body.code, answer.body.hint]).toEqual([status, code, hint])
  })

  test('[A61] answer with reasons as data', async () => {
    const led = await Led.open(project, { automation: true })
    await led.post('/schedules/nightly/pause', { reason: 'the warehouse is down' })
    await led.clock.advance(86_400_000)
    const { status, body } = await led.get('/why/schedule/nightly')
    expect(status).toBe(200)
    expect(body).toMatchObject({
      subject: { kind: 'schedule', name: 'nightly' },
      verdict: 'did_not_run',
      because: [
        { code: 'paused', facts: { by: 'local', reason: 'the warehouse is down', is_everything: false } },
        { code: 'resume_with', facts: { command: 'servo schedules resume nightly' } },
      ],
    })
    expect((await led.get('/why/asset/orders')).body.because.at(-1)).toMatchObject({
      code: 'run_by_schedule',
      because: [{ code: 'last_tick', because: [{ code: 'paused' }] }],
    })
    expect((await led.get('/conflicts')).body).toEqual({ conflicts: [], next_cursor: null })
  })

  test('[A61] name who triggered a schedule that was never due', async () => {
    const led = await Led.open(project, { automation: true })
    const { run_id } = (await led.post('/schedules/nightly/trigger', {})).body
    const first = (await led.get('/why/schedule/nightly')).body
    expect(first).toMatchObject({
      verdict: 'ran',
      because: [{ code: 'triggered_by_hand', facts: { by: 'local', run_id } }, { code: 'never_due' }, { code: 'next_tick' }],
    })
    expect(whyInWords(first, 'UTC')[0]?.text).toMatch(/^nightly ran: local triggered it at .*, as run_/)
  })
})
