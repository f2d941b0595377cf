import { expect, test } from 'vitest'
import { memoryStore } from '../adapters/memory/object-store.ts'
import { faultyStore } from '../testing/faulty-store.ts'
import { VirtualClock } from '../testing/virtual-clock.ts'
import { WatchedStore } from './watched-store.ts'

const bytes = new Uint8Array([1])

test('[H7] a store is silent from its last answer on while it is asked, and a slow one that answers others is not', async () => {
  const clock = new VirtualClock()
  const isSlow = (path: string): boolean => path.startsWith('slow/')
  const inner = faultyStore(
    memoryStore(),
    ({ path }) => (isSlow(path) ? { delayMs: 10_000 } : undefined),
    (ms) => clock.sleep(ms),
  )
  const watched = new WatchedStore(inner, () => clock.monotonic())
  expect(watched.silentMs).toBe(0)
  const slow = watched.store.create('slow/a', bytes)
  await clock.advance(600)
  expect(watched.silentMs).toBe(600)
  // Questions that are answered say nothing of writing.
  await watched.store.get('b')
  expect(watched.silentMs).toBe(600)
  await watched.store.create('b', bytes)
  expect(watched.silentMs).toBe(0)
  await clock.advance(300)
  expect(watched.silentMs).toBe(300)
  await clock.advance(10_000)
  await slow
  expect(watched.silentMs).toBe(0)
})

test('[H7] who reads a list slowly does not make the store silent, and one that breaks off leaves nothing behind', async () => {
  const clock = new VirtualClock()
  const watched = new WatchedStore(memoryStore(), () => clock.monotonic())
  for (const name of ['l/a', 'l/b', 'l/c']) await watched.store.create(name, bytes)
  const seen: string[] = []
  for await (const { path } of watched.store.list('l/')) {
    await clock.advance(5_000)
    expect(watched.silentMs).toBe(0)
    seen.push(path)
    if (seen.length === 2) break
  }
  expect(seen).toEqual(['l/a', 'l/b'])
  await clock.advance(5_000)
  expect(watched.silentMs).toBe(0)
})

test('[H7] a store has been silent since a moment if it owed something then and answered nothing of that kind, failures included', async () => {
  const clock = new VirtualClock()
  let isAway = false
  const inner = faultyStore(memoryStore(), () => (isAway ? { outcome: 'lost' } : undefined))
  const watched = new WatchedStore(inner, () => clock.monotonic())
  const idle = watched.mark()
  expect(watched.isSilentSince(idle)).toBe(false)
  isAway = true
  await watched.store.create('a', bytes).catch(() => undefined)
  const failing = watched.mark()
  await watched.store.create('a', bytes).catch(() => undefined)
  expect(watched.isSilentSince(failing)).toBe(true)
  isAway = false
  await watched.store.get('b')
  expect(watched.isSilentSince(failing)).toBe(true)
  await watched.store.create('a', bytes)
  expect([watched.isSilentSince(failing), watched.isSilentSince(watched.mark())]).toEqual([false, false])
  // What nobody tries again is not owed for ever.
  isAway = true
  await watched.store.create('c', bytes).catch(() => undefined)
  expect(watched.isSilentSince(watched.mark())).toBe(true)
  await clock.advance(5_000)
  expect(watched.isSilentSince(watched.mark())).toBe(false)
})
