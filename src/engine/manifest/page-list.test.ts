import fc from 'fast-check'
import { expect, test } from 'vitest'
import { memoryStore } from '../../adapters/memory/object-store.ts'
import type { ObjectStore } from '../../ports/object-store.ts'
import { countingStore } from '../../testing/counting-store.ts'
import {
  appendEntry,
  emptyList,
  listPages,
  PAGE_ENTRIES,
  type PageList,
  readEntries,
  readEntriesBackwards,
} from './page-list.ts'

interface Entry {
  readonly publish: number
  readonly what: string
}

const entry = (publish: number): Entry => ({ publish, what: `entry ${publish}` })
const pagePath = (publish: number, level: number): string => `pages/${String(publish).padStart(6, '0')}-${level}.json`

/** A list of entries 1, 3, 5, …: not every publish has one. */
async function listOf(store: ObjectStore, count: number): Promise<PageList<Entry>> {
  let list = emptyList<Entry>()
  for (let i = 0; i < count; i++) {
    const next = appendEntry(list, entry(2 * i + 1), pagePath)
    for (const { path, bytes } of next.pages) expect(await store.create(path, bytes)).toBe('written')
    list = next.list
  }
  return list
}

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = []
  for await (const item of items) all.push(item)
  return all
}

test('entries come back in their order and backwards, from any publish on, however many there are', async () => {
  const counts = [
    0,
    1,
    PAGE_ENTRIES - 1,
    PAGE_ENTRIES,
    PAGE_ENTRIES + 1,
    3 * PAGE_ENTRIES + 5,
    PAGE_ENTRIES ** 2,
    PAGE_ENTRIES ** 2 + 1,
    2 * PAGE_ENTRIES ** 2 + 77,
  ]
  for (const count of counts) {
    const store = memoryStore()
    const list = await listOf(store, count)
    const all = Array.from({ length: count }, (_, i) => entry(2 * i + 1))
    expect(await collect(readEntries(store, list))).toEqual(all)
    expect(await collect(readEntriesBackwards(store, list))).toEqual(all.toReversed())
    for (const from of [0, 2, 2 * PAGE_ENTRIES, 2 * PAGE_ENTRIES + 1, 2 * count - 1, 2 * count]) {
      expect(await collect(readEntries(store, list, from))).toEqual(all.filter(({ publish }) => publish >= from))
    }
  }
})

test('[S10] what a manifest holds of a list stays small, and every page is reached', async () => {
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 0, max: PAGE_ENTRIES ** 2 * 3 }), async (count) => {
      const store = memoryStore()
      const list = await listOf(store, count)
      for (const level of list.levels) expect(level.length).toBeLessThan(PAGE_ENTRIES)
      const pages = (await collect(listPages(store, list))).map(({ path }) => path)
      const stored = (await collect(store.list('pages/'))).map(({ path }) => path)
      expect(pages.sort()).toEqual(stored)
    }),
    { numRuns: 10 },
  )
})

test('[S10] of thousands of entries a manifest holds at most ten kilobytes', async () => {
  const list = await listOf(memoryStore(), 5_399)
  expect(JSON.stringify(list).length).toBeLessThan(10_000)
})

test('a reader that stops early, or begins late, reads no page it does not need', async () => {
  const store = countingStore(memoryStore())
  const list = await listOf(store, PAGE_ENTRIES ** 2 + 3 * PAGE_ENTRIES + 2)
  const newest = 2 * (PAGE_ENTRIES ** 2 + 3 * PAGE_ENTRIES + 2) - 1
  store.reset()
  for await (const { publish } of readEntriesBackwards(store, list)) if (publish === newest - 2) break
  expect(store.count()).toBe(0)
  for await (const { publish } of readEntriesBackwards(store, list)) if (publish < newest - 2 * (PAGE_ENTRIES + 2)) break
  expect(store.count('get')).toBe(2)
  store.reset()
  await collect(readEntries(store, list, newest - 4))
  expect(store.count('get')).toBe(1)
  store.reset()
  const told: string[] = []
  for await (const _ of readEntriesBackwards(store, list, (page) => told.push(page.path))) {
    // Being told of the pages is what this is about.
  }
  expect(told.sort()).toEqual(store.pathsUnder('pages/', 'get').sort())
})

test('appending changes neither the list it began with nor any page that was written', async () => {
  const store = memoryStore()
  const before = await listOf(store, PAGE_ENTRIES - 1)
  const copy = structuredClone(before)
  const { list, pages } = appendEntry(before, entry(999), pagePath)
  expect(before).toEqual(copy)
  expect(list.levels[0]).toEqual([])
  expect(pages.map(({ path }) => path)).toEqual([pagePath(999, 0)])
  // The same entry gives the same page: a publish that is tried again finds its own.
  expect(appendEntry(before, entry(999), pagePath)).toEqual({ list, pages })
})
