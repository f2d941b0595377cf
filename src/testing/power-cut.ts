import * as fs from 'node:fs'
import { dirname, join } from 'node:path'
import { type Disk, nodeDisk } from '../adapters/fs/disk.ts'
import { type BlockingDisk, blockingDisk } from '../adapters/fs/journal/journal.ts'
import { type ObjectDisk, objectDisk } from '../adapters/fs/journal/write-object.ts'

/** A disk writes whole sectors, in any order. */
const SECTOR_BYTES = 512

interface TrackedFile {
  /** As the last sync left it. */
  durable: Buffer
  since: { at: number; bytes: Buffer }[]
}

interface TrackedName {
  readonly file: TrackedFile
  isDurable: boolean
  /** Deleted, and the folder not synced since. */
  isGone: boolean
}

class PowerCut extends Error {}

/**
 * The calls that a store makes, on a machine that loses power at the nth of them. It remembers what was synced, and what the disk may or may not
 * have of the rest: any sectors of any file, any names. Nothing is really synced, so that this is quick.
 */
export class FragileDisk {
  readonly #files = new Map<string, TrackedFile>()
  readonly #names = new Map<string, TrackedName>()
  readonly #opened = new Map<number, { path: string; file: TrackedFile | undefined }>()
  #left: number

  constructor(callsUntilCut: number) {
    this.#left = callsUntilCut
  }

  get isCut(): boolean {
    return this.#left < 0
  }

  /** The power is lost now, if it was not before. */
  cut(): void {
    this.#left = -1
  }

  readonly disk: Disk = {
    ...nodeDisk,
    open: async (path, flags, mode) => this.#open(String(path), Number(flags), Number(mode ?? 0o600)),
    close: async (fd) => this.#close(fd),
    write: async (fd, from, offset, length, at) => ({ bytesWritten: this.#write(fd, from, offset, length, at) }),
    fsync: async (fd) => this.#sync(fd),
    link: async (from, to) => this.#link(String(from), String(to)),
    rename: async (from, to) => this.#rename(String(from), String(to)),
    unlink: async (path) => this.#unlink(String(path)),
  }

  readonly blocking: BlockingDisk = {
    ...blockingDisk,
    write: (fd, from, offset, length, at) => this.#write(fd, from, offset, length, at),
    fdatasync: (fd) => this.#sync(fd),
  }

  readonly objects: ObjectDisk = {
    ...objectDisk,
    open: (path, flags, mode) => this.#open(String(path), Number(flags), Number(mode ?? 0o600)),
    write: this.blocking.write,
    fsync: (fd) => this.#sync(fd),
    link: (from, to) => this.#link(String(from), String(to)),
    close: (fd) => this.#close(fd),
    unlink: (path) => this.#unlink(String(path)),
  }

  /** Writes to `dir` what is there after the power is back; `chance` decides about everything that was not synced. */
  afterwards(root: string, dir: string, chance: () => boolean): void {
    for (const [path, { file, isDurable, isGone }] of this.#names) {
      const relative = path.slice(root.length + 1)
      if (relative.startsWith('.tmp/') || (isDurable && !isGone ? false : chance())) continue
      const target = join(dir, relative)
      fs.mkdirSync(dirname(target), { recursive: true })
      fs.writeFileSync(target, survivor(file, chance))
    }
  }

  #step(): void {
    this.#left -= 1
    if (this.isCut) throw new PowerCut('the power is gone')
  }

  #open(path: string, flags: number, mode: number): number {
    this.#step()
    const fd = fs.openSync(path, flags, mode)
    if ((flags & fs.constants.O_CREAT) !== 0) this.#files.set(path, { durable: Buffer.alloc(0), since: [] })
    this.#opened.set(fd, { path, file: this.#files.get(path) })
    return fd
  }

  #close(fd: number): void {
    this.#opened.delete(fd)
    fs.closeSync(fd)
  }

  #write(fd: number, from: Uint8Array, offset: number, length: number, at: number): number {
    this.#step()
    const bytes = Buffer.from(from.subarray(offset, offset + length))
    this.#opened.get(fd)?.file?.since.push({ at, bytes })
    return fs.writeSync(fd, bytes, 0, bytes.length, at)
  }

  #sync(fd: number): void {
    this.#step()
    const { path, file } = this.#opened.get(fd) ?? {}
    if (file !== undefined) {
      file.durable = survivor(file, () => true)
      file.since = []
      return
    }
    for (const [name, each] of this.#names) {
      if (dirname(name) !== path) continue
      if (each.isGone) this.#names.delete(name)
      else each.isDurable = true
    }
  }

  #link(from: string, to: string): void {
    this.#step()
    fs.linkSync(from, to)
    this.#named(to, this.#files.get(from))
  }

  #rename(from: string, to: string): void {
    this.#step()
    fs.renameSync(from, to)
    this.#named(to, this.#files.get(from))
    this.#files.delete(from)
  }

  #named(path: string, file: TrackedFile | undefined): void {
    if (file === undefined) return
    this.#files.set(path, file)
    this.#names.set(path, { file, isDurable: false, isGone: false })
  }

  #unlink(path: string): void {
    this.#step()
    fs.unlinkSync(path)
    this.#files.delete(path)
    const name = this.#names.get(path)
    if (name !== undefined) name.isGone = true
  }
}

/** What the disk has of a file: what was synced, and of what was written since the sectors that chance let through. */
function survivor({ durable, since }: TrackedFile, chance: () => boolean): Buffer {
  let content = Buffer.from(durable)
  for (const { at, bytes } of since) {
    for (let sector = 0; sector < bytes.length; sector += SECTOR_BYTES) {
      if (!chance()) continue
      const part = bytes.subarray(sector, sector + SECTOR_BYTES)
      const end = at + sector + part.length
      if (end > content.length) content = Buffer.concat([content, Buffer.alloc(end - content.length)])
      content.set(part, at + sector)
    }
  }
  return content
}
