import { expect, test } from 'vitest'
import { memoryStore } from '../../adapters/memory/object-store.ts'
import { orchestration } from '../../domain/index.ts'
import { HOUR_MS, MINUTE_MS, SECOND_MS } from '../../lib/time.ts'
import { ulidSource } from '../../lib/ulid.ts'
import { countingStore } from '../../testing/counting-store.ts'
import { reportFact } from '../../testing/facts.ts'
import { VirtualClock } from '../../testing/virtual-clock.ts'
import { Loop } from '../loop/loop.ts'
import { Publisher } from './publisher.ts'

async function publishing() {
  const clock = new VirtualClock()
  const store = countingStore(memoryStore())
  const scope = { tenant_id: 'acme', workspace_id: 'prod' }
  let next = 0
  const ulid = ulidSource(
    () => clock.now(),
    (length) => Uint8Array.from({ length }, () => next++ % 256),
  )
  const collected: number[] = []
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
    onDurable: () => self.publisher?.noticed(),
  })
  const publisher = new Publisher({
    compactor: loop.compactor,
    clock,
    collect: async () => collected.push(clock.now()),
    onError: (error) => expect.fail(String(error)),
  })
  self.publisher = publisher
  return { clock, store, loop, publisher, collected }
}

test('what is durable is in the tables a moment later, and many facts at once are one publish', async () => {
  const { clock, loop } = await publishing()
  for (let i = 0; i < 5; i++) await loop.submit([reportFact(`r${i}`)])
  expect(loop.compactor.manifest.publish).toBe(0)
  await clock.advance(2 * SECOND_MS)
  expect(loop.compactor.manifest.publish).toBe(1)
  expect(loop.compactor.fold.unpublished).toBe(0)
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
