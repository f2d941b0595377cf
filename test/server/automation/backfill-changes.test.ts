import { describe, expect, test } from 'vitest'
import type { DispatchEnvelope } from '../../../src/contract/dispatch.ts'
import { projectManifest } from '../../../src/contract/project-manifest.ts'
import { backfills } from '../../../src/domain/backfills/backfills.table.ts'
import { whyInWords } from '../../../src/domain/why/words.ts'
import { SECOND_MS } from '../../../src/lib/time.ts'
import { Led } from '../led.ts'
import { failure } from '../world.ts'

const daily = { type: 'daily', start: '2024-01-01', end: '2024-03-31', timezone: 'UTC' } as const
const monthly = { type: 'monthly', start: '2024-01-01', end: '2024-04-01', timezone: 'UTC' } as const
const asset = (asset_key: string, more: object = {}) => ({ asset_key, kind: 'asset' as const, ...more })
const all = { type: 'all' } as const
const project = {
  assets: [
    asset('up', { partitions: daily, policies: { overlap: 'skip', backfill: { chunk: 7 } } }),
    asset('down', { partitions: daily, deps: [{ asset_key: 'up' }], policies: { backfill: { chunk: 3 } } }),
    asset('months', { partitions: monthly, deps: [{ asset_key: 'down' }] }),
    asset('aside', { partitions: daily }),
  ],
}

const taskOf = ({ asset_key, partition }: DispatchEnvelope): string => `${asset_key}[${partition?.key}]`
const january = (days: number) => ({ type: 'range', start: '2024-01-01', end: `2024-01-${String(days).padStart(2, '0')}` })

async function open(ms = 10, automation = true) {
  const failing = new Set<string>()
  const script = (envelope: DispatchEnvelope) =>
    failing.has(taskOf(envelope)) ? { ms, result: failure({ retryable: false }) } : { ms }
  const led = await Led.open(project, { automation }, script)
  led.server.orchestrator.projectKnown()
  const detail = async (id: string) => (await led.get(`/backfills/${id}`)).body
  return {
    led,
    failing,
    detail,
    shown: async (id: string) => (await detail(id)).backfill,
    create: async (body: object): Promise<string> => (await led.post('/backfills', body)).body.backfill_id,
    tell: (id: string, what: string, body: object = {}) => led.post(`/backfills/${id}/${what}`, body),
    why: async (id: string) => whyInWords((await led.get(`/why/backfill/${id}`)).body, 'UTC').map(({ text }) => text),
    over: async (id: string, seconds = 120) => {
      for (let i = 0; i < seconds; i++) {
        const { backfill } = await detail(id)
        if (['SUCCEEDED', 'FAILED', 'CANCELLED'].includes(backfill.state)) return backfill
        await led.clock.advance(SECOND_MS)
      }
      throw new Error(`${id} did not come to its end`)
    },
    define: (change: (one: (typeof project.assets)[number]) => object) =>
      led.server.define(
        projectManifest.parse({ project: 'led', assets: project.assets.map((one) => ({ ...one, ...change(one) })) }),
      ),
  }
}

describe('a backfill whose project is changed', () => {
  test('[A83] pauses and says why when an asset is made from other partitions; it is resumed when that is changed back', async () => {
    const { led, create, define, shown, tell, over } = await open(1_000)
    const body = { select: ['up', 'down'], partitions: january(10), chunk_size: 2, max_concurrent_runs: 1 }
    const id = await create(body)
    await led.clock.advance(100)
    await define(({ asset_key }) => (asset_key === 'down' ? { deps: [{ asset_key: 'up', mapping: all }] } : {}))
    await led.clock.advance(10_000)
    expect(await shown(id)).toMatchObject({ state: 'PAUSED', planned_chunks: 1 })
    expect((await shown(id)).state_reason).toMatch(
      /^the partitions that down is made from were changed .*; change them back and resume it/,
    )
    const refused = await tell(id, 'resume')
    expect(refused).toMatchObject({ status: 409, body: { code: 'partitions_changed' } })
    expect(refused.body.detail).toContain('cannot go on: the partitions that down is made from were changed')
    expect(await shown(id)).toMatchObject({ state: 'PAUSED', state_version: 3 })
    await define(() => ({}))
    expect((await tell(id, 'resume')).body).toMatchObject({ message: 'backfill resumed', state: 'RUNNING' })
    expect(await over(id)).toMatchObject({ state: 'SUCCEEDED', succeeded_partitions: 20 })
  })

  test('goes on when an asset is also made from one that it does not cover', async () => {
    const { led, create, define, over } = await open(1_000)
    const id = await create({ select: ['up', 'down'], partitions: january(4), chunk_size: 2, max_concurrent_runs: 1 })
    await led.clock.advance(100)
    await define(({ asset_key }) => (asset_key === 'down' ? { deps: [{ asset_key: 'up' }, { asset_key: 'aside' }] } : {}))
    expect(await over(id)).toMatchObject({ state: 'SUCCEEDED', succeeded_partitions: 8 })
  })

  test('is not retried when what failed is made from other partitions by now', async () => {
    const { failing, create, define, over, tell } = await open()
    failing.add('up[2024-01-02]')
    const id = await create({ select: ['up', 'down'], partitions: january(3) })
    await over(id)
    await define(({ asset_key }) => (asset_key === 'down' ? { deps: [{ asset_key: 'up', mapping: all }] } : {}))
    expect(await tell(id, 'retry-failed')).toMatchObject({ status: 409, body: { code: 'partitions_changed' } })
  })
})

describe('a backfill beside another run', () => {
  test.each([1, 3, 31])(
    '[A89] succeeds when all that it did not make was made by that run, in chunks of %i',
    async (chunk_size) => {
      const { led, create, over, detail, tell } = await open(20_000)
      await led.server.api.runs.request({ select: ['up'], partitions: ['2024-01-01..2024-01-03'], key: 'other' }, 'ada')
      await led.clock.advance(1_000)
      const id = await create({
        select: ['up', 'down', 'months'],
        partitions: january(31),
        chunk_size,
        max_concurrent_runs: 31,
      })
      expect(await over(id, 400)).toMatchObject({
        state: 'SUCCEEDED',
        skipped_partitions: 7,
        succeeded_partitions: 56,
        failed_partitions: 0,
      })
      const { assets } = await detail(id)
      for (const { skipped } of assets) expect(skipped).toEqual({ positions: [], keys: [] })
      expect((await tell(id, 'retry-failed')).body).toMatchObject({
        backfill_id: null,
        message: 'nothing to do: nothing failed',
      })
    },
  )
})

describe('a cancellation', () => {
  test('[A90] of which more is asked later cancels the runs too; a repetition gets the answer to the first that asked for as much', async () => {
    const { led, create, tell, over } = await open(60_000)
    const id = await create({ select: ['aside'], partitions: january(30), chunk_size: 3, max_concurrent_runs: 2 })
    await led.clock.advance(SECOND_MS)
    const first = (await tell(id, 'cancel', { reason: 'enough' })).body
    expect(first).toMatchObject({ message: 'cancellation requested', accepted_event_id: expect.any(String) })
    await led.clock.advance(SECOND_MS)
    const answerOf = ({ accepted_event_id, accepted_at }: Record<string, string>) => ({ accepted_event_id, accepted_at })
    expect((await tell(id, 'cancel', { reason: 'other' })).body).toMatchObject(answerOf(first))
    const more = (await tell(id, 'cancel', { cancel_runs: true })).body
    expect(more.accepted_event_id).not.toBe(first.accepted_event_id)
    expect(await over(id, 20)).toMatchObject({
      state: 'CANCELLED',
      cancelled_chunks: 2,
      cancel_reason: 'enough',
      cancel_runs: true,
    })
    expect((await tell(id, 'cancel', { cancel_runs: true })).body).toMatchObject(answerOf(more))
    expect((await tell(id, 'cancel')).body).toMatchObject(answerOf(first))
  })

  test('[A82] of the run of a chunk leaves what needs it undone', async () => {
    const { led, create, over, detail } = await open(5_000)
    const both = await create({
      select: ['aside', 'up', 'down', 'months'],
      partitions: january(31),
      chunk_size: 31,
      max_concurrent_runs: 1,
    })
    await led.clock.advance(SECOND_MS)
    const { chunks } = (await led.get(`/backfills/${both}/chunks`)).body
    await led.post(`/runs/${chunks[0].run_id}/cancel`, {})
    expect(await over(both)).toMatchObject({ state: 'FAILED', cancelled_chunks: 1, skipped_chunks: 1, skipped_partitions: 1 })
    const { assets } = await detail(both)
    expect(assets.map(({ asset_key }: { asset_key: string }) => asset_key)).toEqual(['aside', 'up', 'down', 'months'])
  })
})

describe('an answer about a backfill', () => {
  test('names assets that are left out, as its preview does, and again when the request is repeated', async () => {
    const { led, shown } = await open()
    const body = {
      select: ['up', 'months'],
      partitions: { type: 'filter', filters: { partition: '2024-01-*' } },
      client_request_id: 'r',
    }
    const left_out = [{ asset_key: 'months', partitions: 0, why: 'no partition matches' }]
    const { client_request_id: _, ...asked } = body
    expect((await led.post('/backfills/preview', asked)).body.left_out).toEqual(left_out)
    const { body: made } = await led.post('/backfills', body)
    expect(made).toMatchObject({ created: true, total_partitions: 31, left_out })
    expect((await led.post('/backfills', body)).body).toMatchObject({ created: false, left_out })
    expect((await shown(made.backfill_id)).left_out).toEqual(left_out)
  })

  test('lists assets in graph order, whether it goes on or has ended long ago', async () => {
    const { led, create, detail, over } = await open()
    const id = await create({ select: ['*'], partitions: january(31) })
    const order = async () => (await detail(id)).assets.map(({ asset_key }: { asset_key: string }) => asset_key)
    const { asset_selection } = (await detail(id)).backfill
    expect(await order()).toEqual(asset_selection)
    await over(id)
    const { compactor } = led.server.orchestrator.loop
    await compactor.publish({ kind: 'base' })
    await compactor.publish({ kind: 'base' })
    expect(compactor.state.hot(backfills).get(id)).toBeUndefined()
    expect(await order()).toEqual(asset_selection)
  })

  test('has chunks of the smallest size that its assets declare', async () => {
    const { led } = await open()
    const { body } = await led.post('/backfills/preview', { select: ['up', 'down'], partitions: january(31) })
    expect(body.stages).toEqual([{ assets: ['up', 'down'], chunk_size: 3, chunks: 11 }])
  })

  test.each([
    ['a filter without a dimension', { type: 'filter', filters: {} }, 'must name a dimension'],
    ['a range without ends', { type: 'explicit', partition_keys: ['..'] }, '`..` names neither'],
  ])('to %s is a refusal', async (_, partitions, expected) => {
    const { led } = await open()
    const { status, body } = await led.post('/backfills', { select: ['up'], partitions })
    expect([status, JSON.stringify(body)]).toEqual([400, expect.stringContaining(expected)])
    expect((await led.get('/backfills')).body.backfills).toEqual([])
  })
})

describe('while automation', () => {
  test('[A91] is paused, no chunk is planned, and runs that have begun go on; it says why it waits', async () => {
    const { led, create, shown, over, why } = await open(5_000)
    const id = await create({ select: ['aside'], partitions: january(10), chunk_size: 1, max_concurrent_runs: 2 })
    await led.clock.advance(SECOND_MS)
    await led.post('/automation/pause', { reason: 'maintenance' })
    await led.clock.advance(30_000)
    expect(await shown(id)).toMatchObject({
      state: 'RUNNING',
      waits_for: 'automation_paused',
      planned_chunks: 2,
      succeeded_chunks: 2,
      expected_end: null,
    })
    expect((await why(id))[0]).toMatch(/waits: all automation was paused by \w+ at .*: maintenance$/)
    await led.post('/automation/resume', {})
    expect(await over(id)).toMatchObject({ state: 'SUCCEEDED', waits_for: null, succeeded_chunks: 10 })
  })

  test('[A91] is off on the server, backfills are created and cancelled, and plan nothing', async () => {
    const { led, create, shown, tell, over, why } = await open(10, false)
    const id = await create({ select: ['aside'], partitions: january(10) })
    await led.clock.advance(30_000)
    expect(await shown(id)).toMatchObject({ state: 'RUNNING', waits_for: 'automation_off', planned_chunks: 0 })
    expect((await why(id))[0]).toContain('waits: automation is off')
    await tell(id, 'cancel')
    expect(await over(id)).toMatchObject({ state: 'CANCELLED' })
  })
})
