import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { isServoError } from '../../lib/error.ts'
import { type Disk, nodeDisk } from './disk.ts'
import { fsStore } from './object-store.ts'

/** One system call on its way: `run` makes it, and what this returns or throws is what the store gets to see. */
type Interference = (name: keyof Disk, args: unknown[], run: () => Promise<unknown>) => Promise<unknown>

function interfered(interfere: Interference): Disk {
  const calls = Object.entries(nodeDisk).map(([name, call]) => [
    name,
    (...args: unknown[]) =>
      interfere(name as keyof Disk, args, () => (call as (...args: unknown[]) => Promise<unknown>)(...args)),
  ])
  return Object.fromEntries(calls) as Disk
}

const errno = (code: string) => Object.assign(new Error(`${code}: injected`), { code })
const body = new Uint8Array(10_000).fill(7)
const path = 'ledger/2025-01-15/segment.json'

describe('a folder on a failing disk', () => {
  let dir: string

  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), 'servo-failing-'))
  })

  afterEach(async () => {
    await rm(dir, { recursive: true })
  })

  const tempFiles = () => readdir(join(dir, 'store/.tmp')).catch(() => [])

  /** Writes once with the nth system call failing, then asks for what must be true. False when there were not that many. */
  async function failNth(method: 'create' | 'put', nth: number, code: string, when: 'before' | 'after'): Promise<boolean> {
    const open = new Set<number>()
    let left = nth
    let failed: string | undefined
    const disk = interfered(async (name, args, run) => {
      left -= 1
      const fails = left === 0
      if (fails) failed = name
      // What opens must not be leaked by the test, and what fails to close is closed all the same.
      const late = name === 'close' || (when === 'after' && name !== 'open')
      if (fails && !late) throw errno(code)
      const answer = await run()
      if (name === 'open') open.add(answer as number)
      if (name === 'close') open.delete(args[0] as number)
      if (fails) throw errno(code)
      return answer
    })
    const store = fsStore(join(dir, 'store'), disk)
    const outcome = await store[method](path, body).then(
      () => 'done',
      (error: unknown) => error,
    )
    left = 0
    const context = `${method}, call ${nth} (${failed}) fails with ${code} ${when} its effect`

    // Whatever was answered, the object is there whole or not at all, and only a failed unlink may leave a temporary file.
    const there = await store.get(path)
    expect(there === undefined || Buffer.compare(there, body) === 0, context).toBe(true)
    if (outcome === 'done') expect(there, context).toBeDefined()
    else expect(isServoError(outcome, 'unavailable'), `${context}: ${String(outcome)}`).toBe(true)
    expect(await tempFiles(), context).toHaveLength(failed === 'unlink' && when === 'before' ? 1 : 0)

    // The obstacle is gone: the same store works at once.
    const again = await store.create(path, body)
    expect(again, context).toBe(there === undefined ? 'written' : 'exists')
    expect(await store.create('ledger/2025-01-16/next.json', body), context).toBe('written')
    await store.sweepTemp(0)
    expect(await tempFiles(), context).toEqual([])
    await store.close()
    expect(open.size, `${context}: every file is closed`).toBe(0)
    await rm(join(dir, 'store'), { recursive: true })
    return failed !== undefined
  }

  for (const method of ['create', 'put'] as const) {
    for (const code of ['ENOSPC', 'EIO', 'ENOENT']) {
      it(`${method} is all or nothing and recovers, whichever system call fails with ${code}`, async () => {
        for (const when of ['before', 'after'] as const) {
          let nth = 1
          while (await failNth(method, nth, code, when)) nth += 1
          // Opening three folders, writing, syncing, placing and cleaning up are more calls than this.
          expect(nth).toBeGreaterThan(15)
        }
      })
    }
  }

  it.each([
    ['ENOSPC', 'unavailable', 'disk_full'],
    ['EDQUOT', 'unavailable', 'disk_full'],
    ['EFBIG', 'unavailable', 'disk_full'],
    ['EROFS', 'unavailable', 'read_only'],
    ['EACCES', 'unavailable', 'read_only'],
    ['EPERM', 'unavailable', 'read_only'],
    ['EMFILE', 'unavailable', 'too_many_files'],
    ['ENFILE', 'unavailable', 'too_many_files'],
    ['EIO', 'unavailable', 'disk_error'],
    ['ESTALE', 'unavailable', 'disk_error'],
    ['ENOENT', 'unavailable', 'folder_gone'],
    ['ENOTDIR', 'invalid', 'path_conflict'],
    ['EXDEV', 'invalid', 'two_filesystems'],
    ['ENAMETOOLONG', 'invalid', 'path_too_long'],
  ])('%s is told as %s, %s, with a way out', async (code, kind, told) => {
    const isTarget = (args: unknown[]) => String(args[1]).endsWith('/a')
    const store = fsStore(
      dir,
      interfered(async (name, args, run) => {
        if (name === 'link' && isTarget(args)) throw errno(code)
        return await run()
      }),
    )
    const error = await store.create('a', body).catch((error: unknown) => error)
    expect(error).toMatchObject({ kind, code: told, facts: { path: 'a', dir, errno: code }, cause: { code } })
    expect(isServoError(error) && error.hint).toMatch(/\w/)
    await store.close()
  })

  it('tells a filesystem without hard links from a folder that may not be written', async () => {
    for (const code of ['EPERM', 'ENOTSUP', 'ENOSYS']) {
      const store = fsStore(
        dir,
        interfered(async (name, _, run) => {
          if (name === 'link') throw errno(code)
          return await run()
        }),
      )
      await expect(store.create('a', body)).rejects.toMatchObject({ kind: 'invalid', code: 'no_hard_links' })
      expect(await readdir(join(dir, '.tmp'))).toEqual([])
      await store.close()
    }
  })

  it('says that it may not read, rather than that it is read-only, when reading', async () => {
    const store = fsStore(
      dir,
      interfered(() => Promise.reject(errno('EACCES'))),
    )
    for (const read of [() => store.get('a'), () => store.size('a'), () => store.list('')[Symbol.asyncIterator]().next()]) {
      await expect(read()).rejects.toMatchObject({ kind: 'unavailable', code: 'no_access' })
    }
  })

  it('takes a link that NFS made but reported as existing for its own', async () => {
    const store = fsStore(
      dir,
      interfered(async (name, _, run) => {
        const answer = await run()
        if (name === 'link') throw errno('EEXIST')
        return answer
      }),
    )
    expect(await store.create('a', body)).toBe('written')
    expect(await store.create('a', body)).toBe('exists')
    await store.close()
  })

  it('reads on when the disk gives less than was asked, and writes on when it takes less', async () => {
    const store = fsStore(
      dir,
      interfered(async (name, args, run) => {
        if (name !== 'read' && name !== 'write') return await run()
        const [fd, buffer, offset, length, position] = args as [number, Uint8Array, number, number, number]
        return await nodeDisk[name](fd, buffer, offset, Math.min(length, 999), position).then((answer) => ({ ...answer }))
      }),
    )
    expect(await store.create('a', body)).toBe('written')
    expect(await store.get('a')).toEqual(body)
    expect(await store.getRange('a', 500, 5_000)).toEqual(body.slice(500, 5_500))
    await store.close()
  })
})
