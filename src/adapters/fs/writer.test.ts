import { mkdtemp, open, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { isServoError } from '../../lib/error.ts'
import { nodeDisk } from './disk.ts'
import { fsStore } from './object-store.ts'
import { type ObjectWriter, type WriteOrder, type WriteOutcome, writerThread } from './writer.ts'

const bytes = (text: string) => new TextEncoder().encode(text)

/** Asks for useless writes until the thread has started, which takes a moment. */
async function startedThread(dir: string): Promise<ObjectWriter> {
  const writer = writerThread()
  for (let i = 0; ; i++) {
    const outcome = await writer.write({
      temp: join(dir, 'no', 'folder'),
      target: join(dir, 'x'),
      path: 'x',
      bytes: bytes('x'),
      folder: -1,
    })
    if (outcome === 'not_written') return writer
    if (i > 100) await setTimeout(10)
  }
}

/** The thread itself, telling of its calls to the file system, of which one may fail, and then of the outcome. */
async function observedWrite(order: WriteOrder, failing = ''): Promise<unknown[]> {
  const observed = `
    const fs = require('node:fs')
    const { parentPort, workerData } = require('node:worker_threads')
    const names = new Map([[workerData.folder, 'folder']])
    const { openSync, fsyncSync, linkSync } = fs
    const tell = (call) => {
      parentPort.postMessage(call)
      if (call === workerData.failing) throw new Error(call + ' failed')
    }
    fs.openSync = (...given) => {
      const fd = openSync(...given)
      names.set(fd, 'file')
      return fd
    }
    fs.fsyncSync = (fd) => {
      fsyncSync(fd)
      tell('sync ' + names.get(fd))
    }
    fs.linkSync = (...given) => {
      linkSync(...given)
      tell('link')
    }
    require('node:module').syncBuiltinESMExports()
    import(workerData.file)`
  const file = join(import.meta.dirname, 'writer-thread.ts')
  const thread = new Worker(observed, { eval: true, execArgv: [], workerData: { file, folder: order.folder, failing } })
  const told: unknown[] = []
  thread.on('message', (call) => told.push(call.outcome ?? call))
  thread.postMessage({ type: 'write', ...order })
  const isOutcome = (call: unknown): boolean => call === 'written' || call === 'not_written' || typeof call === 'object'
  await expect.poll(() => told.some(isOutcome), { timeout: 30_000 }).toBe(true)
  await thread.terminate()
  return told
}

describe('objects written in a thread of their own', () => {
  let dir: string

  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), 'servo-writer-'))
  })

  afterEach(async () => {
    await rm(dir, { recursive: true })
  })

  it('are whole, under their names, and leave nothing in .tmp', async () => {
    const outcomes: unknown[] = []
    const thread = await startedThread(dir)
    const store = fsStore(dir, nodeDisk, {
      ...thread,
      write(order) {
        const outcome = thread.write(order)
        void outcome?.then((what) => outcomes.push(what))
        return outcome
      },
    })
    await store.create('a/first', bytes('0'))
    for (let i = 0; i < 20; i++) expect(await store.create(`a/${i}`, bytes(`body ${i}`))).toBe('written')
    // The folder of temporary files is made by the first write, so that one was done the usual way.
    expect(outcomes).toEqual(['not_written', ...Array(20).fill('written')])
    for (let i = 0; i < 20; i++) expect(await readFile(join(dir, `a/${i}`), 'utf8')).toBe(`body ${i}`)
    await setTimeout(50)
    expect(await readdir(join(dir, '.tmp'))).toEqual([])
    await store.close()
  })

  it('[L3] are synced, then placed, then their folder is synced, and only then they are written', async () => {
    const folder = await open(dir)
    const order = { temp: join(dir, 'temp'), target: join(dir, 'x'), path: 'x', bytes: bytes('x'), folder: folder.fd }
    expect(await observedWrite(order)).toEqual(['sync file', 'link', 'sync folder', 'written'])
    const next = { ...order, target: join(dir, 'y') }
    expect(await observedWrite(next, 'sync file'), 'nothing is placed that was not synced').toEqual([
      'sync file',
      'not_written',
    ])
    expect(await observedWrite(next, 'sync folder')).toEqual([
      'sync file',
      'link',
      'sync folder',
      { lost: { message: 'sync folder failed', code: undefined } },
    ])
    await folder.close()
  })

  it('do not replace what is there', async () => {
    const store = fsStore(dir, nodeDisk, await startedThread(dir))
    await store.create('a/x', bytes('first'))
    expect(await store.create('a/y', bytes('first'))).toBe('written')
    expect(await store.create('a/y', bytes('second'))).toBe('exists')
    expect(await readFile(join(dir, 'a/y'), 'utf8')).toBe('first')
    await store.close()
  })

  it('are written the usual way while the thread is busy with another', async () => {
    const thread = await startedThread(dir)
    const store = fsStore(dir, nodeDisk, thread)
    const outcomes = await Promise.all(Array.from({ length: 50 }, (_, i) => store.create(`a/${i}`, bytes(`body ${i}`))))
    expect(new Set(outcomes)).toEqual(new Set(['written']))
    expect((await readdir(join(dir, 'a'))).length).toBe(50)
    await store.close()
  })

  it('are reported lost when their folder could not be synced, and are not tried again', async () => {
    const orders: WriteOrder[] = []
    const lost = Object.assign(new Error('EIO: i/o error, fsync'), { code: 'EIO' })
    const failing: ObjectWriter = {
      ...writerThread(),
      write(order): Promise<WriteOutcome> {
        orders.push(order)
        return Promise.resolve({ error: lost })
      },
    }
    const store = fsStore(dir, nodeDisk, failing)
    const error = await store.create('a/x', bytes('x')).catch((thrown: unknown) => thrown)
    expect(isServoError(error, 'unavailable')).toBe(true)
    expect(orders.length).toBe(1)
    expect(await store.get('a/x')).toBeUndefined()
    await store.close()
  })
})
