import { describe, expect, it } from 'vitest'
import { expectInvalid, fill, listAll, pathsIn, type TheStore, text, times } from './samples.ts'

/**
 * Paths in byte order, chosen so that the order of folders and files differs from it: `-` and `.` come before the slash,
 * digits, `=`, letters and `_` after it. Upper case comes before lower case.
 */
const inOrder = [
  '-x',
  '0',
  '9/x',
  'Z/x',
  '_',
  'a-/b',
  'a-b',
  'a.json',
  'a.json-/x',
  'a/-',
  'a/b-c/d',
  'a/b.json',
  'a/b/c',
  'a/b/c.d/e/f',
  'a/b0',
  'a/b=1/c',
  'a0',
  'a=1/x',
  'a=2',
  'a_b/x',
  'aa/x',
]

export function listingObjects(store: TheStore): void {
  describe('list', () => {
    it('is empty for an empty store or an unknown prefix', async () => {
      expect(await listAll(store(), '')).toEqual([])
      expect(await listAll(store(), 'a/')).toEqual([])
      await fill(store(), ['a', 'b/c'])
      for (const prefix of ['missing/', 'a/', 'b/c/', 'b/d/e/']) expect(await listAll(store(), prefix), prefix).toEqual([])
    })

    it('gives every object, in byte order of whole paths', async () => {
      await fill(store(), [...inOrder].reverse())
      expect(await listAll(store(), '')).toEqual(inOrder.map((path) => ({ path })))
    })

    it('gives only objects under the prefix, not those that merely begin alike', async () => {
      await fill(store(), inOrder)
      for (const prefix of ['a/', 'a/b/', 'a/b/c.d/', 'a=1/', 'a-/', 'Z/']) {
        expect(await pathsIn(store(), prefix), prefix).toEqual(inOrder.filter((path) => path.startsWith(prefix)))
      }
    })

    it('continues strictly after any path, whether it is an object, a folder or nothing at all', async () => {
      await fill(store(), inOrder)
      const positions = [...inOrder, 'a', 'a/', 'a/b', 'a/b/', 'a/b/c/d', 'a.', 'a-', 'a1', 'A', 'zz', '-', 'a/b/c.d/e/f0', '']
      for (const prefix of ['', 'a/', 'a/b/']) {
        for (const after of positions) {
          const expected = inOrder.filter((path) => path.startsWith(prefix) && path > after)
          expect(await pathsIn(store(), prefix, { after }), `${prefix} after ${after}`).toEqual(expected)
        }
      }
    })

    it('reaches objects fifty folders deep', async () => {
      const deep = `${'d/'.repeat(50)}object`
      await fill(store(), [deep, 'd-', 'd/e'])
      expect(await pathsIn(store(), '')).toEqual(['d-', deep, 'd/e'])
      expect(await pathsIn(store(), 'd/'.repeat(50))).toEqual([deep])
      expect(await pathsIn(store(), '', { after: deep })).toEqual(['d/e'])
    })

    it('is complete over more objects than fit on two pages of any bucket', async () => {
      const name = (index: number) => (index * 7919).toString(36).padStart(5, '0')
      const paths = [
        ...times(2_100, (index) => `flat/${name(index)}`),
        ...times(300, (index) => `spread/${index % 30}/${name(index)}`),
      ]
      await fill(store(), paths)
      const sorted = paths.toSorted()
      expect(await pathsIn(store(), '')).toEqual(sorted)
      expect(await pathsIn(store(), '', { after: sorted[1_500]! })).toEqual(sorted.slice(1_501))
      expect(await pathsIn(store(), 'spread/')).toEqual(sorted.slice(2_100))
    })

    it('is not disturbed by objects that come, go and change while it runs', async () => {
      const staying = times(150, (index) => `d/${String(index).padStart(3, '0')}/object`)
      await fill(store(), [...staying, 'd/149/z'])
      const seen: string[] = []
      for await (const { path } of store().list('d/')) {
        seen.push(path)
        if (seen.length === 40) await store().delete('d/149/z')
        if (seen.length % 50 === 0) {
          await store().create(`d/000/early-${seen.length}`, text('x'))
          await store().create(`d/149/late-${seen.length}`, text('x'))
          await store().put('d/100/object', text(`changed ${seen.length}`))
        }
      }
      expect(seen.filter((path) => path.endsWith('/object'))).toEqual(staying)
      expect(seen).toEqual([...new Set(seen)].sort())
    })

    it('names an object that is being replaced, once', async () => {
      await fill(
        store(),
        times(20, (index) => `m/${index + 10}`),
      )
      let listing = true
      const writer = (async () => {
        while (listing) await store().put('m/15', text('again'))
      })()
      for (let round = 0; round < 20; round += 1) {
        expect(await pathsIn(store(), 'm/')).toEqual(times(20, (index) => `m/${index + 10}`))
      }
      listing = false
      await writer
    })

    it('can be left early, and run beside another', async () => {
      await fill(store(), ['a', 'b', 'c'])
      for await (const { path } of store().list('')) {
        expect(path).toBe('a')
        expect(await pathsIn(store(), '')).toEqual(['a', 'b', 'c'])
        break
      }
      expect(await pathsIn(store(), '')).toEqual(['a', 'b', 'c'])
    })

    it('names the folders directly below a prefix, each once, in byte order of their paths', async () => {
      expect(await Array.fromAsync(store().folders(''))).toEqual([])
      await fill(store(), [...inOrder].reverse())
      expect(await Array.fromAsync(store().folders(''))).toEqual(['9', 'Z', 'a-', 'a.json-', 'a', 'a=1', 'a_b', 'aa'])
      expect(await Array.fromAsync(store().folders('a/'))).toEqual(['b-c', 'b', 'b=1'])
      expect(await Array.fromAsync(store().folders('a/b/'))).toEqual(['c.d'])
      for (const prefix of ['9/', 'missing/', 'a/b/c.d/e/']) {
        expect(await Array.fromAsync(store().folders(prefix)), prefix).toEqual([])
      }
    })

    it('names a new folder as soon as it holds an object', async () => {
      await store().create('d/2025-01-15/x', text('x'))
      expect(await Array.fromAsync(store().folders('d/'))).toEqual(['2025-01-15'])
      await store().create('d/2025-01-14/x', text('x'))
      expect(await Array.fromAsync(store().folders('d/'))).toEqual(['2025-01-14', '2025-01-15'])
    })

    it('refuses a prefix that does not end in a slash', async () => {
      for (const prefix of ['a', 'a/b', 'a.json']) {
        await expectInvalid(() => listAll(store(), prefix), prefix)
        await expectInvalid(() => Array.fromAsync(store().folders(prefix)), prefix)
      }
    })
  })
}
