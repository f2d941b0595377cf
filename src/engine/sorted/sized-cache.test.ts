import { expect, test } from 'vitest'
import { SizedCache } from './sized-cache.ts'

test('what was used longest ago makes room', () => {
  const cache = new SizedCache<string>(10)
  cache.set('a', 'A', 4)
  cache.set('b', 'B', 4)
  cache.get('a')
  cache.set('c', 'C', 4)
  expect([cache.get('a'), cache.get('b'), cache.get('c')]).toEqual(['A', undefined, 'C'])
  expect(cache.size).toBe(8)
})

test('setting something again counts it once', () => {
  const cache = new SizedCache<string>(10)
  for (let i = 0; i < 5; i++) cache.set('a', 'A', 4)
  cache.set('b', 'B', 6)
  expect(cache.size).toBe(10)
  expect(cache.get('a')).toBe('A')
})

test('what is larger than the cache is handed out but not kept', async () => {
  const cache = new SizedCache<string>(10)
  expect(
    await cache.load(
      'a',
      async () => 'A',
      () => 11,
    ),
  ).toBe('A')
  expect([cache.get('a'), cache.size]).toEqual([undefined, 0])
})

test('concurrent requests for one thing share one load', async () => {
  const cache = new SizedCache<string>(10)
  let loads = 0
  const load = () =>
    cache.load(
      'a',
      async () => `load ${++loads}`,
      () => 1,
    )
  expect(await Promise.all([load(), load(), load()])).toEqual(['load 1', 'load 1', 'load 1'])
  expect(await load()).toBe('load 1')
})

test('a failed load is not remembered', async () => {
  const cache = new SizedCache<string>(10)
  const failing = cache.load(
    'a',
    () => Promise.reject(new Error('away')),
    () => 1,
  )
  await expect(failing).rejects.toThrow('away')
  expect(
    await cache.load(
      'a',
      async () => 'back',
      () => 1,
    ),
  ).toBe('back')
})
