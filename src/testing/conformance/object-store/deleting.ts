import { describe, expect, it } from 'vitest'
import { fill, pathsIn, type TheStore, times } from './samples.ts'

export function deletingObjects(store: TheStore): void {
  describe('delete', () => {
    it('removes an object, and only that one', async () => {
      await fill(store(), ['a/1', 'a/2', 'b/1'])
      await store().delete('a/1')
      expect(await store().get('a/1')).toBeUndefined()
      expect(await store().size('a/1')).toBeUndefined()
      expect(await pathsIn(store(), '')).toEqual(['a/2', 'b/1'])
    })

    it('succeeds for an object that is not there, any number of times', async () => {
      await fill(store(), ['folder/object'])
      for (const path of ['missing', 'folder/missing', 'folder', 'folder/object/below']) await store().delete(path)
      expect(await pathsIn(store(), '')).toEqual(['folder/object'])
      for (const path of ['folder/object', 'folder/object']) await store().delete(path)
      expect(await pathsIn(store(), '')).toEqual([])
    })

    it('lets an object come back, listed once like any other', async () => {
      await fill(store(), ['a', 'b', 'c'])
      expect(await pathsIn(store(), '')).toEqual(['a', 'b', 'c'])
      await store().delete('b')
      await fill(store(), ['b'])
      expect(await pathsIn(store(), '')).toEqual(['a', 'b', 'c'])
      await store().delete('b')
      expect(await pathsIn(store(), '')).toEqual(['a', 'c'])
    })

    it('may be called by many callers at once', async () => {
      await fill(store(), ['a'])
      await Promise.all(times(10, () => store().delete('a')))
      expect(await store().get('a')).toBeUndefined()
    })
  })
}
