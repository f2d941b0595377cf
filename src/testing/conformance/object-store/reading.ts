import { describe, expect, it } from 'vitest'
import { expectInvalid, listAll, sameBytes, type TheStore, text } from './samples.ts'

export function readingObjects(store: TheStore): void {
  describe('reading', () => {
    it('gives undefined for an object that does not exist', async () => {
      await store().create('folder/object', text('x'))
      for (const path of ['missing', 'folder', 'folder/missing', 'folder/object/below', 'missing/deep/down']) {
        expect(await store().get(path), path).toBeUndefined()
        expect(await store().getRange(path, 0, 10), path).toBeUndefined()
        expect(await store().size(path), path).toBeUndefined()
      }
    })

    it('gives back bytes of every value, as a plain Uint8Array', async () => {
      const bytes = Uint8Array.from({ length: 65_536 }, (_, index) => (index * 31 + (index >> 8)) & 0xff)
      await store().create('bytes', bytes)
      const read = await store().get('bytes')
      expect(sameBytes(read, bytes)).toBe(true)
      // Not a Buffer: its slice() means something else, and the same code must run over every adapter.
      expect(read?.constructor).toBe(Uint8Array)
    })

    it('distinguishes an empty object from a missing one', async () => {
      expect(await store().create('empty', new Uint8Array())).toBe('written')
      expect(await store().create('empty', text('x'))).toBe('exists')
      expect(await store().get('empty')).toEqual(new Uint8Array())
      expect(await store().getRange('empty', 0, 10)).toEqual(new Uint8Array())
      expect(await store().size('empty')).toBe(0)
      expect(await listAll(store(), '')).toEqual([{ path: 'empty' }])
    })

    it('keeps an object of 16 MiB whole, and reads from its middle', async () => {
      const bytes = new Uint8Array(16 * 2 ** 20)
      for (let index = 0; index < bytes.length; index += 997) bytes[index] = index % 251
      expect(await store().create('large', bytes)).toBe('written')
      expect(await store().size('large')).toBe(bytes.length)
      expect(sameBytes(await store().get('large'), bytes)).toBe(true)
      expect(await store().getRange('large', 9_000_000, 1_000)).toEqual(bytes.slice(9_000_000, 9_001_000))
    })

    it('reads a range as far as the object goes', async () => {
      await store().create('digits', text('0123456789'))
      const ranges: [start: number, length: number, expected: string][] = [
        [0, 10, '0123456789'],
        [0, 1, '0'],
        [3, 4, '3456'],
        [9, 1, '9'],
        [8, 100, '89'],
        [0, Number.MAX_SAFE_INTEGER, '0123456789'],
        [5, 0, ''],
        [10, 5, ''],
        [11, 5, ''],
        [Number.MAX_SAFE_INTEGER, 1, ''],
      ]
      for (const [start, length, expected] of ranges) {
        expect(await store().getRange('digits', start, length), `${length} from ${start}`).toEqual(text(expected))
      }
    })

    it('refuses an impossible range', async () => {
      await store().create('a', text('abc'))
      const ranges: [start: number, length: number][] = [
        [-1, 1],
        [0, -1],
        [0.5, 1],
        [0, Number.NaN],
        [Number.POSITIVE_INFINITY, 1],
        [0, Number.POSITIVE_INFINITY],
      ]
      for (const [start, length] of ranges) {
        await expectInvalid(() => store().getRange('a', start, length), `${length} from ${start}`)
      }
    })
  })
}
