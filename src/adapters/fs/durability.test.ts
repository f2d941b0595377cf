import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Disk, nodeDisk } from './disk.ts'
import { fsStore } from './object-store.ts'

const body = new Uint8Array(1_000).fill(7)

describe('a folder that may lose power', () => {
  let dir: string

  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), 'servo-durable-'))
  })

  afterEach(async () => {
    await rm(dir, { recursive: true })
  })

  /** A disk that notes what happened to which file or folder; a sync is noted when it begins and when it ends. */
  function recording(): { disk: Disk; log: string[] } {
    const log: string[] = []
    const names = new Map<number, string>()
    const nameOf = (path: unknown) => {
      const relative = String(path).slice(dir.length + 1)
      return relative.startsWith('.tmp/') ? 'temp' : relative === '' ? 'root' : relative
    }
    const disk: Disk = {
      ...nodeDisk,
      async open(path, flags) {
        const fd = await nodeDisk.open(path, flags)
        names.set(fd, nameOf(path))
        return fd
      },
      async fsync(fd) {
        log.push(`syncing ${names.get(fd)}`)
        await nodeDisk.fsync(fd)
        log.push(`synced ${names.get(fd)}`)
      },
      async mkdir(path) {
        await nodeDisk.mkdir(path)
        log.push(`made ${nameOf(path)}`)
      },
      async link(from, to) {
        await nodeDisk.link(from, to)
        log.push(`placed ${nameOf(to)}`)
      },
      async rename(from, to) {
        await nodeDisk.rename(from, to)
        log.push(`placed ${nameOf(to)}`)
      },
    }
    return { disk, log }
  }

  it.each(['create', 'put'] as const)(
    '[L3] %s syncs the bytes, then places the name, then syncs the folder, then resolves',
    async (method) => {
      const { disk, log } = recording()
      const store = fsStore(dir, disk)
      await store.create('a/b/first', body)
      log.length = 0
      await store[method]('a/b/second', body)
      expect(log).toEqual(['syncing temp', 'synced temp', 'placed a/b/second', 'syncing a/b', 'synced a/b'])
      await store.close()
    },
  )

  it('[L3] syncs a folder into its parent before the first object inside is announced, also when another process made it', async () => {
    const first = recording()
    const store = fsStore(dir, first.disk)
    await store.create('a/b/object', body)
    for (const [folder, parent] of [
      ['a', 'root'],
      ['a/b', 'a'],
    ] as const) {
      expect(first.log.lastIndexOf(`synced ${parent}`)).toBeGreaterThan(first.log.indexOf(`made ${folder}`))
    }
    const second = recording()
    const other = fsStore(dir, second.disk)
    await other.create('a/b/other', body)
    expect(second.log.filter((entry) => entry.startsWith('synced'))).toEqual(
      expect.arrayContaining(['synced root', 'synced a', 'synced a/b']),
    )
    expect(second.log.filter((entry) => entry.startsWith('made'))).toEqual([])
    await Promise.all([store.close(), other.close()])
  })

  it('[L3] syncs an object and its folder before it answers that the object exists', async () => {
    const { disk, log } = recording()
    const store = fsStore(dir, disk)
    await store.create('a/b', body)
    log.length = 0
    expect(await store.create('a/b', body)).toBe('exists')
    expect(log).toEqual(['syncing temp', 'synced temp', 'syncing a/b', 'synced a/b', 'syncing a', 'synced a'])
    await store.close()
  })

  it('[L3] does not count a sync that had begun before the name was there', async () => {
    const { disk, log } = recording()
    const begun: (() => void)[] = []
    const released = fsStore(dir, {
      ...disk,
      async fsync(fd) {
        await disk.fsync(fd)
        if (log.at(-1) === 'synced a') await new Promise<void>((release) => begun.push(release))
      },
    })
    const until = async (isSo: () => boolean) => {
      while (!isSo()) await new Promise(setImmediate)
    }
    const told: string[] = []
    const create = (name: string) => released.create(`a/${name}`, body).then(() => told.push(name))

    const first = create('first')
    await until(() => begun.length === 1)
    const second = create('second')
    await until(() => log.includes('placed a/second'))
    begun[0]!()
    await until(() => begun.length === 2)
    expect(told).toEqual(['first'])
    const third = create('third')
    await until(() => log.includes('placed a/third'))
    begun[1]!()
    await until(() => begun.length === 3)
    expect(told).toEqual(['first', 'second'])
    begun[2]!()
    await Promise.all([first, second, third])
    await released.close()
  })

  it('lets concurrent creators share a sync of the folder, but only one that began after their name was there', async () => {
    const { disk, log } = recording()
    const store = fsStore(dir, disk)
    await store.create('a/first', body)
    log.length = 0
    await Promise.all(
      Array.from({ length: 32 }, async (_, index) => {
        await store.create(`a/${index}`, body)
        log.push(`told ${index}`)
      }),
    )
    expect(log.filter((entry) => entry === 'syncing a').length).toBeLessThan(32)
    for (let index = 0; index < 32; index += 1) {
      const since = log.slice(log.indexOf(`placed a/${index}`), log.indexOf(`told ${index}`))
      const began = since.indexOf('syncing a')
      expect(began, `a sync began after a/${index} was placed`).toBeGreaterThan(0)
      expect(since.indexOf('synced a', began), `and ended before a/${index} was announced`).toBeGreaterThan(began)
    }
    await store.close()
  })
})
