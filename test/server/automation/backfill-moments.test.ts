import { describe, expect, test } from 'vitest'
import type { DispatchEnvelope } from '../../../src/contract/dispatch.ts'
import { whyInWords } from '../../../src/domain/why/words.ts'
import { DAY_MS, SECOND_MS } from '../../../src/lib/time.ts'
import { Led } from '../led.ts'
import { failure } from '../world.ts'

const asset = (asset_key: string, more: object = {}) => ({ asset_key, kind: 'asset' as const, ...more })
const reads = (asset_key: string, mapping?: object) => ({ inputs: { it: { asset_key, ...(mapping && { mapping }) } } })
const all = { type: 'all' } as const
const customers = { type: 'dynamic', name: 'customers' } as const
const daily = (start: string, end?: string) => ({ type: 'daily', start, timezone: 'UTC', ...(end && { end }) })
const taskOf = ({ asset_key, partition }: DispatchEnvelope): string =>
  partition == null ? asset_key : `${asset_key}[${partition.key}]`

async function open(assets: readonly ReturnType<typeof asset>[], ms = 1_000) {
  const failing = new Set<string>()
  const script = (envelope: DispatchEnvelope) =>
    failing.has(taskOf(envelope)) ? { ms, result: failure({ retryable: false }) } : { ms }
  const led = await Led.open({ assets: [...assets] }, { automation: true }, script)
  led.server.orchestrator.projectKnown()
  const detail = async (id: string) => (await led.get(`/backfills/${id}`)).body
  return {
    led,
    failing,
    started: (since = 0): string[] => led.workers.started.slice(since).map(taskOf),
    keys: (change: object) => led.post('/partitions/sets/customers/keys', change),
    create: (more: object = {}) => led.post('/backfills', { select: ['*'], partitions: all, ...more }),
    tell: (id: string, what: string, body: object = {}) => led.post(`/backfills/${id}/${what}`, body),
    firstRun: async (id: string): Promise<string> => (await led.get(`/backfills/${id}/chunks`)).body.chunks[0].run_id,
    over: async (id: string) => {
      for (let i = 0; i < 120; i++) {
        const { backfill } = await detail(id)
        if (backfill.finished_at !== null) return backfill
        await led.clock.advance(SECOND_MS)
      }
      throw new Error(`${id} did not come to its end`)
    },
  }
}

describe('[A84] what a backfill means', () => {
  test('is one moment, though keys are added to a set while the status of its partitions is looked up', async () => {
    const { keys, create, over, started } = await open([asset('of', { partitions: customers })], 10)
    await keys({ add: ['c', 'd', 'e', 'm'] })
    await over((await create({ partitions: { type: 'explicit', partition_keys: ['c', 'd'] } })).body.backfill_id)
    const before = started().length
    const [{ body: made }] = await Promise.all([create({ skip_existing: true }), keys({ add: ['a', 'b'] })])
    await over(made.backfill_id)
    // The new keys are in it or not; what exists is not made again in place of what is missing.
    expect(started(before).filter((task) => !['of[a]', 'of[b]'].includes(task))).toEqual(['of[e]', 'of[m]'])
  })

  test.each([
    ['a key is added', customers, all, ['a', 'b']],
    ['a day closes', daily('2025-12-31'), all, ['2025-12-31', '2026-01-01']],
    ['a day closes and another is the newest', daily('2025-12-31'), { type: 'last' }, ['2026-01-01']],
  ])('is also what its tasks read: %s meanwhile', async (_, partitions, mapping, expected) => {
    const { led, keys, create, over } = await open([asset('part', { partitions }), asset('whole', reads('part', mapping))])
    await keys({ add: ['a', 'b'] })
    led.clock.jump(2 * DAY_MS - SECOND_MS)
    const { body } = await create({ chunk_size: 1, max_concurrent_runs: 1 })
    await led.clock.advance(SECOND_MS / 2)
    await keys({ add: ['aa', 'z'] })
    expect(await over(body.backfill_id)).toMatchObject({ state: 'SUCCEEDED', succeeded_partitions: 3 })
    const read = led.workers.started.find(({ asset_key }) => asset_key === 'whole')?.payload.inputs['it']?.values
    expect(read?.map(({ partition_key }) => partition_key)).toEqual(expected)
  })
})

test('a backfill is paused while another of a million partitions is being created', async () => {
  const minutely = { type: 'minutely', start: '2024-01-01T00:00', timezone: 'UTC' }
  const { led, create, tell } = await open([
    asset('minutes', { partitions: minutely }),
    asset('days', { partitions: daily('2025-12-01') }),
  ])
  const { body } = await create({ select: ['days'], chunk_size: 1 })
  const order: string[] = []
  await Promise.all([
    create({ select: ['minutes'], skip_existing: true }).then(({ status }) => order.push(`created ${status}`)),
    tell(body.backfill_id, 'pause').then(({ status }) => order.push(`paused ${status}`)),
  ])
  expect(order).toEqual(['paused 202', 'created 202'])
  expect((await led.get('/backfills')).body.backfills).toMatchObject([{ total_partitions: 1_052_640 }, { state: 'PAUSED' }])
})

test('[A87] a backfill of a partition that is made from one that does not exist is refused, as a run of it is', async () => {
  const { led, create, over } = await open([
    asset('days', { partitions: daily('2024-01-15', '2024-04-01') }),
    asset('months', {
      partitions: { type: 'monthly', start: '2024-01-01', end: '2024-04-01', timezone: 'UTC' },
      ...reads('days'),
    }),
  ])
  const refusal = {
    status: 400,
    body: { code: 'upstream_missing', detail: expect.stringContaining('months[2024-01] needs days[2024-01-01]') },
  }
  expect(await create()).toMatchObject(refusal)
  expect(await led.post('/backfills/preview', { select: ['*'], partitions: all })).toMatchObject(refusal)
  expect((await led.get('/backfills')).body.backfills).toEqual([])
  const { body } = await create({ partitions: { type: 'range', start: '2024-02', end: '2024-03' }, chunk_size: 100 })
  expect(await over(body.backfill_id)).toMatchObject({ state: 'SUCCEEDED', succeeded_partitions: 62 })
})

describe('[A92] a retry', () => {
  const chain = [
    asset('days', { partitions: daily('2024-01-01', '2024-01-11') }),
    asset('whole', reads('days')),
    asset('after', { deps: [{ asset_key: 'whole' }] }),
  ]

  test('also makes what a run left undone that was cancelled by itself: nothing is made without it', async () => {
    const { led, create, over, tell, firstRun, started } = await open(chain, 5_000)
    const { body } = await create({ chunk_size: 8, max_concurrent_runs: 1 })
    await led.clock.advance(SECOND_MS)
    await led.post(`/runs/${await firstRun(body.backfill_id)}/cancel`, {})
    expect(await over(body.backfill_id)).toMatchObject({ state: 'FAILED', cancelled_partitions: 8, skipped_partitions: 2 })
    const why = whyInWords((await led.get(`/why/backfill/${body.backfill_id}`)).body, 'UTC').map(({ text }) => text)
    expect(why[0]).toMatch(/failed at .*: days\[2024-01-01\] and 7 more were cancelled with their runs$/)
    expect(why.join('\n')).toContain('retry what failed: servo backfills retry-failed')
    expect(why.join('\n')).not.toContain('not made; make')
    const before = started().length
    const { body: child } = await tell(body.backfill_id, 'retry-failed')
    expect(child).toMatchObject({ created: true, total_partitions: 10 })
    expect(await over(child.backfill_id)).toMatchObject({ state: 'SUCCEEDED' })
    expect(started(before).slice(-2)).toEqual(['whole', 'after'])
    expect(started(before)).toHaveLength(10)
  })

  test('of a cancelled backfill takes neither what was cancelled nor what lacks it', async () => {
    const { led, failing, create, over, tell, firstRun, started } = await open(
      [
        ...chain,
        asset('aside', { partitions: { type: 'keys', keys: ['x', 'y'] } }),
        asset('late', { deps: [{ asset_key: 'aside' }] }),
      ],
      5_000,
    )
    failing.add('aside[x]')
    const { body } = await create({ chunk_size: 10, max_concurrent_runs: 1 })
    await led.clock.advance(SECOND_MS)
    await led.post(`/runs/${await firstRun(body.backfill_id)}/cancel`, {})
    for (let i = 0; i < 20 && !started().includes('aside[x]'); i++) await led.clock.advance(SECOND_MS)
    await tell(body.backfill_id, 'cancel')
    expect(await over(body.backfill_id)).toMatchObject({ state: 'CANCELLED', failed_partitions: 1, skipped_partitions: 2 })
    failing.clear()
    const before = started().length
    const { body: child } = await tell(body.backfill_id, 'retry-failed')
    expect(await over(child.backfill_id)).toMatchObject({ state: 'SUCCEEDED', total_partitions: 1 })
    expect(started(before)).toEqual(['aside[x]'])
  })
})
