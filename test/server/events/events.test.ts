import { expect, onTestFinished, test } from 'vitest'
import type { WireEvent } from '../../../src/api/events/event-contract.ts'
import type { AssetDefinitionInput } from '../../../src/contract/project-manifest.ts'
import { checksumOf } from '../../../src/contract/stored-output.ts'
import { ulidFloor } from '../../../src/lib/ulid.ts'
import { Led } from '../led.ts'

const asset = (asset_key: string, more: Partial<AssetDefinitionInput> = {}): AssetDefinitionInput => ({
  asset_key,
  kind: 'asset',
  ...more,
})
const project = { assets: [asset('a'), asset('b', { deps: [{ asset_key: 'a' }] })] }

/** Reads a stream of events one at a time. */
class Follower {
  readonly events: WireEvent[] = []
  readonly status: number
  readonly type: string | null
  #reader: ReadableStreamDefaultReader<Uint8Array> | undefined
  #text = ''
  isOver = false

  private constructor(response: Response) {
    this.status = response.status
    this.type = response.headers.get('content-type')
    this.#reader = response.body?.getReader()
    onTestFinished(() => void this.#reader?.cancel().catch(() => undefined))
  }

  static async of(led: Led, path: string, headers: Record<string, string> = {}): Promise<Follower> {
    return new Follower(await led.response(path, { headers }))
  }

  /** Reads until there are so many, or the stream ends. */
  async until(count: number): Promise<WireEvent[]> {
    while (this.events.length < count && !this.isOver) {
      const { done, value } = (await this.#reader?.read()) ?? { done: true, value: undefined }
      this.isOver = done
      this.#text += Buffer.from(value ?? []).toString()
      for (let end = this.#text.indexOf('\n\n'); end >= 0; end = this.#text.indexOf('\n\n')) {
        const frame = this.#text.slice(0, end)
        this.#text = this.#text.slice(end + 2)
        const data = /^data: (.*)$/m.exec(frame)?.[1]
        if (data === undefined) continue
        const event = JSON.parse(data) as WireEvent
        expect(frame).toContain(`id: ${event.event_id}\n`)
        this.events.push(event)
      }
    }
    return this.events
  }

  hangUp = (): void => void this.#reader?.cancel()
}

const idsOf = (events: readonly WireEvent[]): string[] => events.map(({ event_id }) => event_id)
const onRecord = async (led: Led): Promise<WireEvent[]> => (await led.get('/events?follow=false&limit=1000')).body.events

async function opened() {
  const led = await Led.open(project, { automation: true })
  await led.request('first')
  await led.server.orchestrator.loop.idle()
  await led.clock.advance(10)
  await led.server.orchestrator.loop.idle()
  return led
}

test('[X1] everything on record is read in order, from any place, in pages', async () => {
  const led = await opened()
  const all = await onRecord(led)
  expect(all.map(({ event_type }) => event_type)).toContain('RunRequested')
  expect(idsOf(all)).toEqual(idsOf(all).toSorted())
  for (const at of [0, 2, all.length - 1]) {
    const { body } = await led.get(`/events?follow=false&cursor=${all[at]?.event_id}`)
    expect(body).toEqual({ events: all.slice(at + 1), next_cursor: null })
  }
  const paged: WireEvent[] = []
  for (let cursor: string | null = ''; cursor !== null; ) {
    const { body } = await led.get(`/events?follow=false&limit=2${cursor === '' ? '' : `&cursor=${cursor}`}`)
    expect(body.events.length).toBeLessThanOrEqual(2)
    paged.push(...body.events)
    cursor = body.next_cursor
  }
  expect(paged).toEqual(all)
})

test('[X1] followers see each event once and in order, from the ledger and as it happens', async () => {
  const led = await opened()
  const before = await onRecord(led)
  const [whole, late, fromNow] = await Promise.all([
    Follower.of(led, '/events?cursor=beginning'),
    Follower.of(led, '/events', { 'last-event-id': before[1]?.event_id ?? '' }),
    Follower.of(led, '/events'),
  ])
  expect([whole?.status, whole?.type]).toEqual([200, 'text/event-stream; charset=utf-8'])
  // All three wait where the record ends.
  await whole.until(before.length)
  await late.until(before.length - 2)
  const reading = fromNow.until(1)
  await led.request('second')
  await reading
  await led.server.orchestrator.loop.idle()
  await led.clock.advance(10)
  await led.server.orchestrator.loop.idle()
  const all = await onRecord(led)
  expect(idsOf(await whole.until(all.length))).toEqual(idsOf(all))
  expect(idsOf(await late.until(all.length - 2))).toEqual(idsOf(all.slice(2)))
  expect(idsOf(await fromNow.until(all.length - before.length))).toEqual(idsOf(all.slice(before.length)))
})

test('[X2] ids stay: what was published and what is read by another start has the same order', async () => {
  const led = await opened()
  const before = await onRecord(led)
  await led.server.orchestrator.publish()
  await led.request('second')
  await led.server.orchestrator.loop.idle()
  await led.server.orchestrator.loop.compactor.publish({ kind: 'base' })
  await led.request('third')
  await led.server.orchestrator.loop.idle()
  const all = await onRecord(led)
  expect(all.slice(0, before.length)).toEqual(before)
  for (const at of all.keys()) {
    const { body } = await led.get(`/events?follow=false&limit=1000&cursor=${all[at]?.event_id}`)
    expect(idsOf(body.events)).toEqual(idsOf(all.slice(at + 1)))
  }
})

test('[X1] a place that is not on record is one by its id: what comes behind it', async () => {
  const led = await opened()
  const all = await onRecord(led)
  expect((await led.get(`/events?follow=false&cursor=${ulidFloor(0)}`)).body.events).toEqual(all)
  expect((await led.get('/events?follow=false&cursor=7ZZZZZZZZZZZZZZZZZZZZZZZZZ')).body.events).toEqual([])
  expect((await led.get('/events?follow=false&cursor=yesterday')).body).toMatchObject({ code: 'bad_query', field: 'cursor' })
})

test('[X3] events are chosen by run, type and asset', async () => {
  const led = await opened()
  const other = await led.request('other', 'a')
  await led.server.orchestrator.loop.idle()
  const { body } = await led.get(`/events?follow=false&run=${other}`)
  expect(body.events.length).toBeGreaterThan(2)
  expect(new Set(body.events.map((event: WireEvent) => event.payload['run_id']))).toEqual(new Set([other]))
  const { body: typed } = await led.get('/events?follow=false&type=RunRequested,PlanCreated')
  expect(typed.events.map((event: WireEvent) => event.event_type)).toEqual([
    'RunRequested',
    'PlanCreated',
    'RunRequested',
    'PlanCreated',
  ])
  const { body: ofB } = await led.get('/events?follow=false&asset=b&type=TaskFinished')
  expect(ofB.events.map((event: WireEvent) => event.payload['task_key'])).toEqual(['b'])
})

test('[X3] the events of a run end with it, and who has seen them all is told to stop', async () => {
  const led = await opened()
  const [first] = (await led.get('/runs')).body.runs
  const { body } = await led.get(`/runs/${first.run_id}/events`)
  expect(body.next_cursor).toBeNull()
  expect(body.events[0].event_type).toBe('RunRequested')
  const follower = await Follower.of(led, `/runs/${first.run_id}/events`, { accept: 'text/event-stream' })
  expect(idsOf(await follower.until(Number.POSITIVE_INFINITY))).toEqual(idsOf(body.events))
  expect(follower.isOver).toBe(true)
  const last = body.events.at(-1).event_id
  const again = await led.response(`/runs/${first.run_id}/events?follow=true`, { headers: { 'last-event-id': last } })
  expect(again.status).toBe(204)
  expect((await led.get('/runs/run_nobody/events')).body.code).toBe('no_such_run')
})

test('[X4] a follower that falls far behind reads the ledger, and misses nothing', async () => {
  const led = await opened()
  const slow = await Follower.of(led, '/events?cursor=beginning')
  await slow.until(1)
  // More than is kept.
  const metadata = { text: 'x'.repeat(100_000) }
  for (let i = 0; i < 90; i++)
    expect((await led.post('/assets/a/materializations', { report_id: `r-${i}`, metadata })).status).toBe(202)
  for (let i = 0; i < 40; i++) await led.request(`more-${i}`)
  await led.server.orchestrator.loop.idle()
  const all = await onRecord(led)
  expect(idsOf(await slow.until(all.length))).toEqual(idsOf(all))
})

test('[X4] a quiet stream has heartbeats, and a reader that takes nothing for a minute is cut off', async () => {
  const led = await opened()
  const response = await led.response('/events')
  const reader = response.body?.getReader()
  const next = async (): Promise<string> => Buffer.from((await reader?.read())?.value ?? []).toString()
  expect(await next()).toBe(': heartbeat\n\n')
  const second = next()
  await led.clock.advance(16_000)
  expect(await second).toBe(': heartbeat\n\n')
  await led.clock.advance(61_000)
  await expect(reader?.read()).rejects.toThrow('the reader takes nothing')
})

test('[X5] values that events carry are not sent: size and checksum are', async () => {
  const output = { value: '"hush-42"', ...checksumOf(Buffer.from('"hush-42"')) }
  const led = await Led.open(project, {}, () => ({ result: { outcome: 'SUCCEEDED', materialization_id: 'm1', output } }))
  await led.request('first')
  await led.server.orchestrator.loop.idle()
  await led.clock.advance(10)
  await led.server.orchestrator.loop.idle()
  const sent = JSON.stringify(await onRecord(led))
  expect(sent).toContain(output.sha256)
  expect(sent).not.toContain('hush-42')
  const stored: string[] = []
  for await (const { path } of led.memory.store.list(led.paths.ledger))
    stored.push(Buffer.from((await led.memory.store.get(path)) ?? []).toString())
  expect(stored.join()).toContain('hush-42')
})

test('[Y6] a read waits for the event that its caller knows of, and says how far the record goes if that takes too long', async () => {
  const led = await opened()
  const { accepted_event_id } = await led.server.api.runs.request({ select: ['a'], key: 'k' }, 'ana')
  const visible = await led.get(`/runs?wait_for_event_id=${accepted_event_id}&fresh=true`)
  expect(visible.body.runs).toHaveLength(2)
  const future = ulidFloor(led.clock.now() + 60_000)
  const waiting = led.get(`/runs?wait_for_event_id=${future}&timeout_ms=2000`)
  await led.clock.advance(1_999)
  await led.clock.advance(2)
  expect(await waiting).toMatchObject({ status: 504, body: { code: 'not_visible_yet', position: expect.any(String) } })
  // Something happens in time.
  const patient = led.get(`/runs?wait_for_event_id=${ulidFloor(led.clock.now() + 5)}`)
  await led.clock.advance(10)
  await led.request('in-time', 'a')
  expect((await patient).body.runs).toHaveLength(3)
  expect((await led.get('/runs?wait_for_event_id=abc')).body).toMatchObject({ status: 400, field: 'wait_for_event_id' })
  expect((await led.get('/runs?timeout_ms=30001')).body).toMatchObject({ status: 400, field: 'timeout_ms' })
})
