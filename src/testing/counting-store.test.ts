import { describe, expect, it } from 'vitest'
import { memoryStore } from '../adapters/memory/object-store.ts'
import { objectStoreConformance } from './conformance/object-store.ts'
import { countingStore } from './counting-store.ts'

objectStoreConformance('a counting store', async () => ({ store: countingStore(memoryStore()) }))

describe('a counting store', () => {
  it('knows each request, its path and the bytes that went either way', async () => {
    const store = countingStore(memoryStore())
    await store.create('ledger/a', new Uint8Array(10))
    await store.create('ledger/a', new Uint8Array(10))
    await store.put('manifests/1', new Uint8Array(5))
    await store.get('ledger/a')
    await store.getRange('ledger/a', 0, 4)
    await store.get('missing')
    await store.size('ledger/a')
    await store.delete('ledger/a')
    expect(store.count()).toBe(8)
    expect(store.count('create')).toBe(2)
    expect(store.count('get', 'getRange', 'size')).toBe(4)
    expect(store.bytesWritten).toBe(25)
    expect(store.bytesRead).toBe(14)
    expect(store.pathsUnder('ledger/')).toHaveLength(6)
    expect(store.pathsUnder('', 'put', 'delete')).toEqual(['manifests/1', 'ledger/a'])
    store.reset()
    expect([store.count(), store.bytesRead, store.bytesWritten]).toEqual([0, 0, 0])
  })

  it('counts a refused request, because it was sent', async () => {
    const store = countingStore(memoryStore())
    await expect(store.get('..')).rejects.toThrow()
    expect(store.requests).toEqual([{ method: 'get', path: '..' }])
  })

  it('counts a listing by the page, and none that nobody read', async () => {
    const store = countingStore(memoryStore())
    for (let index = 0; index < 2_001; index += 1) await store.create(`a/${index}`, new Uint8Array())
    store.reset()
    store.list('a/')
    expect(store.count()).toBe(0)
    for await (const _ of store.list('a/'));
    expect(store.requests).toEqual([1, 2, 3].map(() => ({ method: 'list', path: 'a/' })))
    store.reset()
    for await (const _ of store.list('a/')) break
    for await (const _ of store.list('empty/'));
    expect(store.count('list')).toBe(2)
  })
})
