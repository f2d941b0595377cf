import { mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { journaledWriter } from '../../../testing/journaled-writer.ts'
import { FragileDisk } from '../../../testing/power-cut.ts'
import { nodeDisk } from '../disk.ts'
import { fsStore } from '../object-store.ts'
import { ownIdentity } from '../process-identity.ts'
import { BLOCK_BYTES, encodeEntry, encodeHeader, entriesIn } from './entry.ts'
import { blockingDisk, JOURNALS, Journal } from './journal.ts'
import { objectDisk } from './write-object.ts'

const bytes = (text: string) => new TextEncoder().encode(text)
/** Room for five small entries. */
const SMALL_HALF = 6 * BLOCK_BYTES
const beforeBoot = encodeHeader({ ...ownIdentity(), boot_id: 'the boot before' })
const errno = (code: string) => Object.assign(new Error(`${code}: injected`), { code })

let dir: string

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'servo-journal-'))
})

afterEach(async () => {
  await rm(dir, { recursive: true })
})

const journals = () => readdir(join(dir, JOURNALS)).catch(() => [])

/** The paths of all entries. */
async function noted(): Promise<string[]> {
  const files = await Promise.all((await journals()).map((name) => readFile(join(dir, JOURNALS, name))))
  return files.flatMap(entriesIn).map(({ path }) => path)
}

/** A journal that another boot of this machine left, with these entries. */
async function leaveJournal(entries: Record<string, string>, name = 'left-a'): Promise<void> {
  await mkdir(join(dir, JOURNALS), { recursive: true })
  const blocks = Object.entries(entries).map(([path, text]) => encodeEntry({ path, bytes: bytes(text) }, 1))
  await writeFile(join(dir, JOURNALS, name), Buffer.concat([beforeBoot, ...blocks, Buffer.alloc(BLOCK_BYTES)]))
}

describe('entries of a journal', () => {
  const blocks = (generation: number, texts: string[]) =>
    texts.map((text, i) => encodeEntry({ path: `a/${i}`, bytes: bytes(text) }, generation))
  const textsOf = (file: Buffer) => entriesIn(file).map((entry) => Buffer.from(entry.bytes).toString())

  it('are read up to the first that is torn, whichever byte of it is wrong', () => {
    const whole = Buffer.concat([beforeBoot, ...blocks(1, ['first', 'second', 'third'])])
    expect(textsOf(whole)).toEqual(['first', 'second', 'third'])
    for (const at of [0, 5, 9, 13, 17, 21, 25]) {
      const torn = Buffer.from(whole)
      torn[2 * BLOCK_BYTES + at]! ^= 0x40
      expect(textsOf(torn), `byte ${at}`).toEqual(['first'])
    }
    expect(textsOf(whole.subarray(0, 3 * BLOCK_BYTES - 4090))).toEqual(['first'])
  })

  it('of an earlier use of the file are not read again', () => {
    const old = blocks(1, ['old', 'older'])
    expect(textsOf(Buffer.concat([beforeBoot, ...blocks(2, ['new']), old[1]!]))).toEqual(['new'])
  })
})

describe('a store with a journal', () => {
  it('[L12] has every acknowledged object after a power cut at any moment, byte for byte, and none that is torn', async () => {
    const act = fc.oneof(
      { weight: 12, arbitrary: fc.record({ kind: fc.constant('create' as const), size: fc.integer({ min: 0, max: 9_000 }) }) },
      { weight: 1, arbitrary: fc.record({ kind: fc.constant('settle' as const), size: fc.constant(0) }) },
      { weight: 1, arbitrary: fc.record({ kind: fc.constant('delete' as const), size: fc.nat(20) }) },
    )
    const base = dir
    const property = fc.asyncProperty(
      fc.array(act, { minLength: 1, maxLength: 30 }),
      fc.integer({ min: 20, max: 400 }),
      fc.nat(),
      async (acts, calls, seed) => {
        const [before, after] = [await mkdtemp(join(base, 'before-')), await mkdtemp(join(base, 'after-'))]
        const fragile = new FragileDisk(calls)
        const wrote = new Map<string, Buffer>()
        const acknowledged = new Set<string>()
        const deleted = new Set<string>()
        try {
          const writer = await journaledWriter(before, { ...fragile, halfBytes: SMALL_HALF })
          const store = fsStore(before, fragile.disk, writer)
          for (const [i, { kind, size }] of acts.entries()) {
            const path = `ledger/day-${i % 2}/${i}`
            if (kind === 'settle') await writer.journal.settle()
            if (kind === 'delete') {
              const victim = [...wrote.keys()][size]
              if (victim !== undefined) deleted.add(victim)
              if (victim !== undefined) await store.delete(victim)
            }
            if (kind !== 'create') continue
            const body = Buffer.alloc(size, `${path} `)
            wrote.set(path, body)
            const outcome = await store.create(path, body)
            if (!fragile.isCut && outcome === 'written') acknowledged.add(path)
          }
        } catch {
          // Whatever the calls came to when there was no power.
        }
        fragile.cut()
        fragile.afterwards(before, after, coin(seed))
        for (const name of await readdir(join(after, JOURNALS)).catch(() => [])) {
          const file = join(after, JOURNALS, name)
          const content = await readFile(file)
          content.set(beforeBoot)
          await writeFile(file, content)
        }
        // A first restore is interrupted, then two begin at once.
        const interrupted = new FragileDisk(seed % 40)
        await fsStore(after, interrupted.disk)
          .get('x')
          .catch(() => undefined)
        const stores = [fsStore(after), fsStore(after)]
        await Promise.all(stores.map((store) => store.get('x')))
        const found = new Map<string, Buffer>()
        for await (const { path } of stores[0]!.list('')) found.set(path, Buffer.from((await stores[0]!.get(path))!))
        for (const path of acknowledged) if (!deleted.has(path)) expect(found.get(path), path).toEqual(wrote.get(path))
        for (const [path, content] of found) expect(content, path).toEqual(wrote.get(path))
        expect(await readdir(join(after, JOURNALS)).catch(() => [])).toEqual([])
        await Promise.all(stores.map((store) => store.close()))
      },
    )
    await fc.assert(property, { numRuns: Number(process.env['SERVO_RUNS'] ?? 25) })
  }, 300_000)

  it('[L12] notes an object before it is placed, and answers after both, with one sync', async () => {
    const log: string[] = []
    const writer = await journaledWriter(dir, {
      blocking: {
        ...blockingDisk,
        fdatasync(fd) {
          blockingDisk.fdatasync(fd)
          log.push('journal synced')
        },
      },
      objects: {
        ...objectDisk,
        fsync: () => void log.push('object or folder synced'),
        link(from, to) {
          log.push(`placed ${String(to).slice(dir.length + 1)}`)
          objectDisk.link(from, to)
        },
      },
    })
    const store = fsStore(dir, nodeDisk, writer)
    await store.create('a/first', bytes('0'))
    log.length = 0
    await store.create('a/x', bytes('x')).then(() => log.push('answered'))
    expect(log).toEqual(['journal synced', 'placed a/x', 'answered'])
    await store.close()
    expect(await journals()).toEqual([])
  })

  it('[L12] does not bring back an object that was deleted on purpose', async () => {
    const writer = await journaledWriter(dir)
    const store = fsStore(dir, nodeDisk, writer)
    for (const name of ['a', 'b', 'c']) await store.create(`x/${name}`, bytes(name))
    await store.delete('x/b')
    expect(await noted(), 'nothing is left in the journal').toEqual([])
    // Each half is used again: behind the new entry are old ones.
    for (const name of ['d', 'e', 'f']) {
      await store.create(`x/${name}`, bytes(name))
      expect(await noted()).toEqual([`x/${name}`])
      await writer.journal.settle()
    }
    await store.close()
  })

  it('[L12] syncs what a killed process noted, takes its journal away, and finds nothing missing', async () => {
    const killed = await journaledWriter(dir)
    const store = fsStore(dir, nodeDisk, killed)
    await store.create('x/a', bytes('a'))
    await store.create('x/b', bytes('b'))
    await rm(join(dir, 'x/a'))
    const next = fsStore(dir)
    await next.get('x/b')
    expect((await journals()).length, 'reading leaves the journal of this boot alone').toBe(2)
    await next.takeJournals()
    expect(await journals()).toEqual([])
    expect(await next.get('x/a'), 'what is gone was deleted').toBeUndefined()
    // The process was only stopped, and goes on: its journal is not there any more, so it syncs what it writes.
    expect(await store.create('x/c', bytes('c'))).toBe('written')
    expect(killed.journal.isBroken).toBe(true)
    await Promise.all([store.close(), next.close()])
  })

  it('[L12] leaves an object alone that another process created under the name of the last entry', async () => {
    await leaveJournal({ 'x/torn': 'whole text', 'x/last': 'mine' })
    await mkdir(join(dir, 'x'))
    await writeFile(join(dir, 'x/torn'), 'whole\0')
    await writeFile(join(dir, 'x/last'), "another's")
    const store = fsStore(dir)
    expect(Buffer.from((await store.get('x/torn'))!).toString()).toBe('whole text')
    expect(Buffer.from((await store.get('x/last'))!).toString()).toBe("another's")
    await store.close()
  })

  it('refuses a journal that names something outside the folder, and says so', async () => {
    await leaveJournal({ '../../x': 'evil' })
    await expect(fsStore(dir).get('a')).rejects.toMatchObject({ code: 'bad_path' })
  })

  it('reads on where a journal cannot be taken because the folder cannot be written to', async () => {
    await leaveJournal({ 'x/a': 'a' })
    const store = fsStore(dir, { ...nodeDisk, rename: () => Promise.reject(errno('EROFS')) })
    expect(await store.get('x/b')).toBeUndefined()
    await store.close()
  })

  it('[L12] writes an object again whose sync fails, and keeps it in the journal while that fails too', async () => {
    let failing: 'nothing' | 'objects' | 'everything' = 'nothing'
    const opened = new Map<number, string>()
    const told: unknown[] = []
    const disk = {
      ...nodeDisk,
      async open(...given: Parameters<typeof nodeDisk.open>) {
        const fd = await nodeDisk.open(...given)
        opened.set(fd, String(given[0]))
        return fd
      },
      async fsync(fd: number) {
        const path = opened.get(fd)!
        if (failing === 'everything' || (failing === 'objects' && path.endsWith('x/a'))) throw errno('EIO')
        await nodeDisk.fsync(fd)
      },
    } as typeof nodeDisk
    const writer = await journaledWriter(dir, { disk, onTrouble: (error) => told.push(error) })
    const store = fsStore(dir, nodeDisk, writer)
    await store.create('x/first', bytes('first'))
    await store.create('x/a', bytes('a'))
    failing = 'everything'
    await writer.journal.settle()
    expect(told).toHaveLength(1)
    expect(writer.journal.settledUpTo).toBe(0)
    expect(await noted()).toContain('x/a')
    await writeFile(join(dir, 'x/a'), '')
    failing = 'objects'
    await writer.journal.settle()
    expect(await readFile(join(dir, 'x/a'), 'utf8')).toBe('a')
    expect(told).toHaveLength(1)
    await store.close()
    expect(await journals()).toEqual([])
  })

  it('works without one where none can be made', async () => {
    const world = { blocking: blockingDisk, onTrouble: () => undefined }
    const full = { ...nodeDisk, rename: () => Promise.reject(errno('ENOSPC')) }
    expect(await Journal.open(dir, { ...world, disk: full })).toBeUndefined()
    expect(await Journal.open(join(dir, 'missing'), { ...world, disk: nodeDisk })).toBeUndefined()
    expect(await Journal.open('/proc', { ...world, disk: nodeDisk }), 'no disk at all').toBeUndefined()
    expect(await journals()).toEqual([])
  })

  it('[L12] syncs an object as usual when the journal does not take it', async () => {
    let isFailing = false
    const synced: number[] = []
    const writer = await journaledWriter(dir, {
      blocking: {
        ...blockingDisk,
        fdatasync(fd) {
          if (isFailing) throw errno('EIO')
          blockingDisk.fdatasync(fd)
        },
      },
      objects: {
        ...objectDisk,
        fsync(fd) {
          synced.push(fd)
          objectDisk.fsync(fd)
        },
      },
    })
    const store = fsStore(dir, nodeDisk, writer)
    await store.create('x/first', bytes('first'))
    await store.create('x/large', new Uint8Array(200_000))
    expect(synced).toHaveLength(2)
    isFailing = true
    expect(await store.create('x/a', bytes('a'))).toBe('written')
    expect(synced).toHaveLength(4)
    await store.close()
  })

  it('[L12] restores a journal that was copied with its folder', async () => {
    await leaveJournal({ 'x/a': 'a' }, 'left-a.taken')
    const copy = `${dir}-copy`
    await rename(dir, copy)
    const store = fsStore(copy)
    expect(Buffer.from((await store.get('x/a'))!).toString()).toBe('a')
    await store.close()
    await rename(copy, dir)
  })
})

/** Says yes or no as the seed has it; some seeds nearly always the same. */
function coin(seed: number): () => boolean {
  let state = seed | 1
  const bias = [0.02, 0.5, 0.98][seed % 3]!
  return () => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) | 0
    return ((state >>> 8) & 0xffff) / 0x10000 < bias
  }
}
