import { mkdir, mkdtemp, readdir, readFile, rm, symlink, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { objectStoreConformance } from '../../testing/conformance/object-store.ts'
import { journaledWriter } from '../../testing/journaled-writer.ts'
import { type Disk, nodeDisk } from './disk.ts'
import { MAX_OPEN_FOLDERS } from './folders.ts'
import { type FsStore, fsStore } from './object-store.ts'
import { writerThread } from './writer.ts'

for (const [name, writer] of [
  ['a folder', undefined],
  ['a folder that a thread writes', writerThread()],
] as const)
  objectStoreConformance(name, async () => {
    const dir = await mkdtemp(join(tmpdir(), 'servo-store-'))
    const store = fsStore(dir, nodeDisk, writer)
    return {
      store,
      async close() {
        await store.close()
        await rm(dir, { recursive: true })
      },
    }
  })

objectStoreConformance('a folder with a journal', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'servo-store-'))
  const store = fsStore(dir, nodeDisk, await journaledWriter(dir))
  return {
    store,
    async close() {
      await store.close()
      await rm(dir, { recursive: true })
    },
  }
})

const bytes = (text: string) => new TextEncoder().encode(text)
const conflict = { kind: 'invalid', code: 'path_conflict' }

describe('a folder', () => {
  let base: string
  let dir: string
  let store: FsStore

  beforeEach(async () => {
    base = await mkdtemp(join(tmpdir(), 'servo-store-'))
    dir = join(base, 'new', 'store')
    store = fsStore(dir)
  })

  afterEach(async () => {
    await store.close()
    await rm(base, { recursive: true })
  })

  const paths = async (prefix = '') => {
    const found: string[] = []
    for await (const { path } of store.list(prefix)) found.push(path)
    return found
  }

  it('is made with those above it by the first write, and not by reading', async () => {
    expect(await store.get('a')).toBeUndefined()
    expect(await store.size('a/b')).toBeUndefined()
    expect(await paths()).toEqual([])
    await store.delete('a')
    expect(await store.sweepTemp(0)).toBe(0)
    expect(await readdir(base)).toEqual([])
    expect(await store.create('a/b', bytes('x'))).toBe('written')
    expect(await readFile(join(dir, 'a/b'), 'utf8')).toBe('x')
  })

  it('shows an object to every store over the same folder', async () => {
    const other = fsStore(join(dir, '..', 'store', '.'))
    expect(other.dir).toBe(store.dir)
    await store.create('a/b', bytes('x'))
    expect(await other.create('a/b', bytes('y'))).toBe('exists')
    expect(await other.get('a/b')).toEqual(bytes('x'))
    await other.close()
  })

  it('refuses an object where a folder is and a folder where an object is', async () => {
    await store.create('a/b/c', bytes('x'))
    for (const path of ['a', 'a/b', 'a/b/c/d', 'a/b/c/d/e']) {
      await expect(store.create(path, bytes('y')), path).rejects.toMatchObject(conflict)
      await expect(store.put(path, bytes('y')), path).rejects.toMatchObject(conflict)
    }
    expect(await readdir(join(dir, '.tmp'))).toEqual([])
    expect(await paths()).toEqual(['a/b/c'])
  })

  it('never follows a symlink out of itself to write, list or read an object', async () => {
    const outside = join(base, 'outside')
    await mkdir(outside)
    await writeFile(join(outside, 'secret'), 'secret')
    await store.create('mine', bytes('x'))
    for (const name of ['one', 'two']) await symlink(join(outside, 'secret'), join(dir, name))
    await symlink(outside, join(dir, 'folder'))

    expect(await store.get('one')).toBeUndefined()
    expect(await store.size('one')).toBeUndefined()
    expect(await paths()).toEqual(['mine'])
    await expect(store.create('one', bytes('y'))).rejects.toMatchObject(conflict)
    await expect(store.create('folder/new', bytes('y'))).rejects.toMatchObject(conflict)
    await expect(store.put('folder/secret', bytes('y'))).rejects.toMatchObject(conflict)
    await store.put('one', bytes('y'))
    await store.delete('two')
    expect(await paths()).toEqual(['mine', 'one'])
    expect(await readdir(outside)).toEqual(['secret'])
    expect(await readFile(join(outside, 'secret'), 'utf8')).toBe('secret')
  })

  it('does not list what it did not write: dot files, odd names, its own temporary files', async () => {
    await store.create('a/object', bytes('x'))
    for (const name of ['.DS_Store', 'a/.nfs0001', 'a/with space', 'a/größe', '.tmp/left'])
      await writeFile(join(dir, name), 'x')
    await mkdir(join(dir, '.git/objects'), { recursive: true })
    await mkdir(join(dir, 'empty/folders'), { recursive: true })
    expect(await paths()).toEqual(['a/object'])
  })

  it('makes a folder again that somebody removed, and .tmp as well', async () => {
    await store.create('a/b/c/one', bytes('x'))
    await rm(join(dir, 'a'), { recursive: true })
    expect(await store.create('a/b/c/two', bytes('x'))).toBe('written')
    await rm(dir, { recursive: true })
    await store.put('a/b/c/three', bytes('x'))
    expect(await paths()).toEqual(['a/b/c/three'])
  })

  it('sweeps temporary files that are old enough, by the clock of the disk', async () => {
    await store.create('a', bytes('x'))
    const ages = { young: 0, middle: 3_000, old: 7_200 }
    for (const [name, ageSec] of Object.entries(ages)) {
      await writeFile(join(dir, '.tmp', name), 'half')
      const then = new Date(Date.now() - ageSec * 1_000)
      await utimes(join(dir, '.tmp', name), then, then)
    }
    expect(await store.sweepTemp(3_600_000)).toBe(1)
    expect((await readdir(join(dir, '.tmp'))).sort()).toEqual(['middle', 'young'])
    expect(await store.sweepTemp(0)).toBe(2)
    expect(await readdir(join(dir, '.tmp'))).toEqual([])
    expect(await paths()).toEqual(['a'])
  })

  it('fails a write harmlessly when its temporary file is swept under it every time', async () => {
    const sweeping: Disk = {
      ...nodeDisk,
      async link(from, to) {
        await nodeDisk.unlink(from)
        await nodeDisk.link(from, to)
      },
    }
    const hurried = fsStore(dir, sweeping)
    await expect(hurried.create('a', bytes('x'))).rejects.toMatchObject({ kind: 'unavailable', code: 'folder_gone' })
    await hurried.close()
    expect(await store.create('a', bytes('y'))).toBe('written')
  })

  it('keeps a bounded number of folders open, and none after close', async () => {
    const open = new Set<number>()
    let most = 0
    const counting: Disk = {
      ...nodeDisk,
      async open(...args) {
        const fd = await nodeDisk.open(...args)
        most = Math.max(most, open.add(fd).size)
        return fd
      },
      async close(fd) {
        expect(open.delete(fd), 'closed once, while open').toBe(true)
        await nodeDisk.close(fd)
      },
      async fsync(fd) {
        expect(open.has(fd), 'synced while open').toBe(true)
        await nodeDisk.fsync(fd)
      },
    }
    const wide = fsStore(dir, counting)
    const folders = Array.from({ length: MAX_OPEN_FOLDERS + 60 }, (_, index) => `f${index}/g`)
    const writers = 8
    await Promise.all(
      Array.from({ length: writers }, async (_, writer) => {
        for (let round = 0; round < 2; round += 1) {
          for (const folder of folders.filter((_, index) => index % writers === writer)) {
            expect(await wide.create(`${folder}/${round}`, bytes('x'))).toBe('written')
          }
        }
      }),
    )
    // The folders kept, and for each writer a temporary file, a folder, and one above each being opened.
    expect(most).toBeLessThanOrEqual(MAX_OPEN_FOLDERS + writers * 4)
    await wide.close()
    expect(open.size).toBe(0)
    expect(await wide.create('again', bytes('x'))).toBe('written')
    await wide.close()
    expect(open.size).toBe(0)
    expect(await paths()).toHaveLength(folders.length * 2 + 1)
  })
})
