import { describe, expect, it } from 'vitest'
import { objectStoreConformance } from '../../testing/conformance/object-store.ts'
import { memoryStore } from './object-store.ts'

objectStoreConformance('the memory store', async () => ({ store: memoryStore() }))

describe('the memory store', () => {
  it('refuses an object where a folder is and a folder where an object is, as a disk does', async () => {
    const store = memoryStore()
    await store.create('a/b/c', new Uint8Array())
    for (const path of ['a', 'a/b', 'a/b/c/d', 'a/b/c/d/e']) {
      await expect(store.create(path, new Uint8Array()), path).rejects.toMatchObject({ kind: 'invalid', code: 'path_conflict' })
      await expect(store.put(path, new Uint8Array()), path).rejects.toMatchObject({ kind: 'invalid', code: 'path_conflict' })
    }
    await store.delete('a/b/c')
    await expect(store.create('a/b', new Uint8Array())).rejects.toMatchObject({ code: 'path_conflict' })
    expect(await store.create('a/b/c', new Uint8Array())).toBe('written')
  })

  it('copies bytes at the moment of the call', async () => {
    const store = memoryStore()
    const bytes = new Uint8Array([1, 2, 3])
    const writing = store.create('a', bytes)
    bytes.fill(0)
    await writing
    expect(await store.get('a')).toEqual(new Uint8Array([1, 2, 3]))
  })

  it('lists quickly while it is being filled', async () => {
    const store = memoryStore()
    for (let index = 0; index < 20_000; index += 1)
      await store.create(`ledger/${String(index).padStart(6, '0')}`, new Uint8Array())
    const seen: string[] = []
    // A tail reader: create one, list what is new. Sorting all paths each time would take minutes.
    for (let index = 20_000; index < 20_200; index += 1) {
      const path = `ledger/${String(index).padStart(6, '0')}`
      await store.create(path, new Uint8Array())
      for await (const object of store.list('ledger/', { after: seen.at(-1) ?? 'ledger/019999' })) seen.push(object.path)
    }
    expect(seen).toHaveLength(200)
  })
})
