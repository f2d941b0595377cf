import { describe, expect, it } from 'vitest'
import { expectInvalid, fill, listAll, pathsIn, type TheStore, text } from './samples.ts'

const letters = 'abcdefghijklmnopqrstuvwxyz'
const longest = `${`${'x'.repeat(199)}/`.repeat(5)}${'y'.repeat(24)}`

const hostile: Record<string, string> = {
  'an empty path': '',
  'a slash': '/',
  'an absolute path': '/etc/passwd',
  'the folder itself': '.',
  'the folder above': '..',
  'a path out of the folder': '../outside',
  'a path out and in again': 'a/../b',
  'a path that ends above': 'a/..',
  'a path with a needless dot': 'a/./b',
  'a hidden name': '.hidden',
  'a hidden folder': '.tmp/x',
  'a hidden name further down': 'a/.hidden',
  'an empty part': 'a//b',
  'a trailing slash': 'a/',
  'a backslash': 'a\\b',
  'a backslashed way out': '..\\outside',
  'a drive letter': 'C:/x',
  'a NUL': 'a\0.json',
  'a line break': 'a\nb',
  'a trailing line break': 'a\n',
  'a terminal escape': '\u001b[2Ja',
  'a space': 'a b',
  'a percent escape': '%2e%2e/a',
  'a wildcard': 'a*',
  'a home folder': '~',
  'an umlaut': 'größe',
  'a dot from another alphabet': '\u2024\u2024/a',
  'a character that turns the line around': 'a\u202egnp.exe',
  'an emoji': '🚀',
  'half a character': 'a\ud800',
  'a part of 201 characters': 'x'.repeat(201),
  'a path of 1,025 bytes': `${longest}y`,
  'a megabyte': 'a/'.repeat(2 ** 19),
}

export function namingObjects(store: TheStore): void {
  describe('a path', () => {
    it('may use letters, digits, dots, underscores, equals signs and hyphens, and be 1,024 bytes long', async () => {
      const paths = [
        `${letters}${letters.toUpperCase()}0123456789._=-`,
        'date=2025-01-15/region=eu/part-0.parquet',
        '-',
        '_',
        '=',
        'a..b',
        'b.',
        `${'z'.repeat(200)}/z`,
        longest,
      ]
      expect(longest).toHaveLength(1_024)
      await fill(store(), paths)
      expect(await pathsIn(store(), '')).toEqual(paths.toSorted())
      for (const path of paths) expect(await store().get(path)).toEqual(text(path))
    })

    it('names an object or leads to others, never both', async () => {
      await fill(store(), ['a/b/c'])
      for (const path of ['a', 'a/b', 'a/b/c/d', 'a/b/c/d/e']) {
        await expectInvalid(() => store().create(path, text('x')), `create ${path}`)
        await expectInvalid(() => store().put(path, text('x')), `put ${path}`)
      }
      expect(await pathsIn(store(), '')).toEqual(['a/b/c'])
      expect(await store().get('a/b/c')).toEqual(text('a/b/c'))
    })

    it.each(Object.entries(hostile))('that is %s is refused by every method and reaches nothing', async (_, path) => {
      await store().create('safe', text('safe'))
      const requests: Record<string, () => unknown> = {
        create: () => store().create(path, text('x')),
        put: () => store().put(path, text('x')),
        get: () => store().get(path),
        getRange: () => store().getRange(path, 0, 1),
        size: () => store().size(path),
        delete: () => store().delete(path),
        'list under it': () => listAll(store(), `${path}/`),
        'list after it': () => listAll(store(), '', { after: `${path}/` }),
      }
      for (const [method, request] of Object.entries(requests)) await expectInvalid(request, method)
      expect(await listAll(store(), '')).toEqual([{ path: 'safe' }])
    })
  })
}
