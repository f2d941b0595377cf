import { expect, test } from 'vitest'
import { memoryStore } from '../../adapters/memory/object-store.ts'
import { orchestration } from '../../domain/index.ts'
import { SensorsPolled } from '../../domain/sensors/sensors-polled.event.ts'
import { HOUR_MS, MINUTE_MS, SECOND_MS, toIso } from '../../lib/time.ts'
import { ulidSource } from '../../lib/ulid.ts'
import { newEvent } from '../../model/event.ts'
import type { ObjectStore } from '../../ports/object-store.ts'
import { countingStore } from '../../testing/counting-store.ts'
import { reportFact } from '../../testing/facts.ts'
import { VirtualClock } from '../../testing/virtual-clock.ts'
import { Loop } from '../loop/loop.ts'
import { Publisher } from './publisher.ts'

async function publishing(inner: ObjectStore = memoryStore(), pack?: () => Promise<boolean>) {
  const clock = new VirtualClock()
  const store = countingStore(inner)
  const scope = { tenant_id: 'acme', workspace_id: 'prod' }
  let next = 0
  const ulid = ulidSource(
    () => clock.now(),
    (length) => Uint8Array.from({ length }, () => next++ % 256),
  )
  const collected: number[] = []
  const quiet: number[] = []
  const self: { publisher?: Publisher } = {}
  const loop = await Loop.open({
    store,
    scope,
    clock,
    ulid,
    registry: orchestration,
    name: 'test',
    source: 'test',
    controllers: [],
    onDurable: (canWait) => self.publisher?.noticed(canWait),
  })
  const publisher = new Publisher({
    compactor: loop.compactor,
    clock,
    collect: async () => collected.push(clock.now()),
    onError: (error) => expect.fail(String(error)),
    onQuiet: () => quiet.push(clock.monotonic()),
    ...(pack && { pack }),
  })
  self.publisher = publisher
  return { clock, store, loop, publisher, collected, quiet }
}

test('what is durable is in the tables a moment later, and many facts at once are one publish', async () => {
  const { clock, loop } = await publishing()
  for (let i = 0; i < 5; i++) await loop.submit([reportFact(`r${i}`)])
  expect(loop.compactor.manifest.publish).toBe(0)
  await clock.advance(2 * SECOND_MS)
  expect(loop.compactor.manifest.publish).toBe(1)
  expect(loop.compactor.fold.unpublished).toBe(0)
})

test('[V3] a clock that is set back delays no publish', async () => {
  const { clock, loop } = await publishing()
  for (const name of ['r1', 'r2']) {
    await loop.submit([reportFact(name)])
    await clock.advance(2 * SECOND_MS)
  }
  clock.jump(-48 * HOUR_MS)
  await loop.submit([reportFact('r3')])
  await clock.advance(2 * SECOND_MS)
  expect(loop.compactor.fold.unpublished).toBe(0)
})

test('[V3] a fact that becomes durable during a publish is in the tables a moment later, though nothing else happens', async () => {
  const inner = memoryStore()
  let gate: Promise<void> | undefined
  const create: ObjectStore['create'] = async (path, bytes) => {
    if (path.includes('/manifests/')) await gate
    return await inner.create(path, bytes)
  }
  const { clock, loop } = await publishing({ ...inner, create })
  await loop.submit([reportFact('r1')])
  await clock.advance(2 * SECOND_MS)
  const opened = Promise.withResolvers<void>()
  gate = opened.promise
  await loop.submit([reportFact('r2')])
  await clock.advance(SECOND_MS)
  await loop.submit([reportFact('r3')])
  expect(loop.compactor.manifest.publish, 'the publish is under way').toBe(1)
  opened.resolve()
  await clock.advance(1)
  expect(loop.compactor.manifest.publish).toBe(2)
  expect(loop.compactor.fold.unpublished, 'what came meanwhile').toBe(1)
  await clock.advance(2 * SECOND_MS)
  expect(loop.compactor.manifest.publish).toBe(3)
  expect(loop.compactor.fold.unpublished).toBe(0)
})

test('[V3] after a publish that took long the next one waits its turn, but not while memory fills', async () => {
  const inner = memoryStore()
  const self: { clock?: VirtualClock } = {}
  let takesMs = 0
  const create: ObjectStore['create'] = async (path, bytes) => {
    if (takesMs > 0 && path.includes('/manifests/')) await self.clock?.sleep(takesMs)
    return await inner.create(path, bytes)
  }
  const { clock, loop } = await publishing({ ...inner, create })
  self.clock = clock
  const publishes = () => loop.compactor.manifest.publish
  await loop.submit([reportFact('first')])
  await clock.advance(2 * SECOND_MS)
  takesMs = 10 * SECOND_MS
  await loop.submit([reportFact('second')])
  await clock.advance(12 * SECOND_MS)
  expect(publishes()).toBe(2)
  takesMs = 0
  for (let i = 0; i < 30; i++) {
    await loop.submit([reportFact(`busy-${i}`)])
    await clock.advance(SECOND_MS)
  }
  expect(publishes(), 'it has had its share').toBe(2)
  await loop.submit(Array.from({ length: 50_000 }, (_, i) => reportFact(`many-${i}`)))
  await clock.advance(1)
  // It is begun; that it ends takes turns of the event loop, and no time.
  await expect.poll(publishes, { message: 'too much waits', timeout: 20_000 }).toBe(3)
})

test('[V3] what can wait is published with the next that cannot, or after an hour', async () => {
  const { clock, loop, store } = await publishing()
  const polled = (id: string) => {
    const at = toIso(clock.now())
    return newEvent(SensorsPolled, {
      ...{ record_id: id, polled: [{ sensor_id: 's', state_version: 0, poll_count: 1, first: at, last: at }] },
    })
  }
  store.reset()
  for (let minute = 1; minute < 60; minute++) {
    await loop.submit([polled(`p${minute}`)])
    await clock.advance(MINUTE_MS)
    expect(store.requests).toHaveLength(minute)
  }
  await clock.advance(2 * MINUTE_MS)
  expect([loop.compactor.manifest.publish, loop.compactor.fold.unpublished]).toEqual([1, 0])
  await loop.submit([polled('more')])
  await loop.submit([reportFact('r1')])
  await clock.advance(2 * SECOND_MS)
  expect([loop.compactor.manifest.publish, loop.compactor.fold.unpublished]).toEqual([2, 0])
})

test('what happens while something waits to be merged is in the tables a moment later all the same', async () => {
  const { clock, loop } = await publishing()
  for (let i = 1; i <= 3; i++) {
    await loop.submit([reportFact(`r${i}`)])
    await clock.advance(2 * SECOND_MS)
    expect(loop.compactor.manifest.l0).toHaveLength(i)
  }
})

test('what was published is merged when it is old although nothing happens, and then nothing is asked of the store', async () => {
  const { clock, loop, store } = await publishing()
  await loop.submit([reportFact('r1')])
  await clock.advance(2 * SECOND_MS)
  expect(loop.compactor.manifest.l0).toHaveLength(1)
  await clock.advance(15 * MINUTE_MS)
  expect(loop.compactor.manifest.l0).toHaveLength(0)
  store.reset()
  await clock.advance(24 * HOUR_MS)
  expect(store.requests).toEqual([])
})

test('what no manifest names is collected about once an hour, while there is something to publish', async () => {
  const { clock, loop, collected } = await publishing()
  for (let i = 0; i < 20; i++) {
    await loop.submit([reportFact(`r${i}`)])
    await clock.advance(11 * MINUTE_MS)
  }
  expect(collected.length).toBeGreaterThanOrEqual(2)
  expect(collected.length).toBeLessThanOrEqual(4)
})

test('nothing is published after the end', async () => {
  const { clock, loop, publisher } = await publishing()
  await publisher.close()
  await loop.submit([reportFact('r1')])
  await clock.advance(MINUTE_MS)
  expect(loop.compactor.manifest.publish).toBe(0)
})

test('after a busy time everything is merged as soon as it is quiet, once, and memory can be given back', async () => {
  const { clock, loop, quiet } = await publishing()
  const facts = (from: number, count: number) => Array.from({ length: count }, (_, i) => reportFact(`r${from + i}`))
  await loop.submit(facts(0, 3_000))
  await clock.advance(10 * SECOND_MS)
  await loop.submit(facts(3_000, 3_000))
  await clock.advance(10 * SECOND_MS)
  expect(loop.compactor.fold.unpublished).toBe(0)
  expect(quiet).toHaveLength(0)
  await clock.advance(MINUTE_MS)
  expect(quiet).toHaveLength(1)
  expect(loop.compactor.manifest.l0).toHaveLength(0)
  await clock.advance(5 * MINUTE_MS)
  // A few facts are not worth it.
  await loop.submit(facts(6_000, 10))
  await clock.advance(MINUTE_MS)
  expect(quiet).toHaveLength(1)
  expect(loop.compactor.manifest.l0).toHaveLength(1)
})

test('the ledger is packed step by step after a publish, though nothing else happens, until nothing is left to pack', async () => {
  let left = 5
  const steps: number[] = []
  const { clock, loop } = await publishing(memoryStore(), async () => {
    steps.push(clock.now())
    return --left > 0
  })
  await clock.advance(MINUTE_MS)
  expect(steps).toEqual([])
  await loop.submit([reportFact('r1')])
  await clock.advance(MINUTE_MS)
  expect(steps).toHaveLength(5)
  await clock.advance(5 * MINUTE_MS)
  expect(steps).toHaveLength(5)
})

test('a server that is never idle packs a step every minute or so', async () => {
  let steps = 0
  const self: { loop?: Loop } = {}
  const inner = memoryStore()
  // Something is always durable that is not published yet when a publish is over.
  const create: ObjectStore['create'] = async (path, bytes) => {
    if (path.includes('/manifests/')) await self.loop?.submit([reportFact(`during ${path}`)])
    return await inner.create(path, bytes)
  }
  const { clock, loop } = await publishing({ ...inner, create }, async () => {
    steps += 1
    return true
  })
  self.loop = loop
  await loop.submit([reportFact('r1')])
  await clock.advance(2.5 * MINUTE_MS)
  expect(steps).toBe(2)
})
