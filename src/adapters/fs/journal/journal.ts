import { randomBytes } from 'node:crypto'
import * as fs from 'node:fs'
import { statfs } from 'node:fs/promises'
import { dirname } from 'node:path'
import { asRoot, type Disk, errnoOf, syncPath, undefinedIfMissing } from '../disk.ts'
import { ownIdentity } from '../process-identity.ts'
import { syncObject, type TempFiles, tempFiles } from '../temp.ts'
import { BLOCK_BYTES, encodeEntry, encodeHeader, entryBytes, type JournalEntry } from './entry.ts'

/** The folder of journals in a store. Its name has a dot, so no listing shows it. */
export const JOURNALS = '.journal'

/** What is larger takes so long to write that one sync more does not matter. */
const MAX_JOURNALED_BYTES = 128 << 10
/** A thousand small segments. */
const HALF_BYTES = 4 << 20
/** However few entries there are: so long after a write at most, its file is on its way to the disk. */
const MAX_AGE_MS = 10_000
/** Syncs under way at a time. There are four threads for them, which others need too. */
const SYNCS_AT_ONCE = 2

/** The calls that make an entry durable. They block, in a thread that has nothing else to do. */
export const blockingDisk = {
  write: (fd: number, from: Uint8Array, offset: number, length: number, at: number): number =>
    fs.writeSync(fd, from, offset, length, at),
  fdatasync: fs.fdatasyncSync,
  inodeOf: (path: string): number | undefined => fs.statSync(path, { throwIfNoEntry: false })?.ino,
}
export type BlockingDisk = typeof blockingDisk

/**
 * Filesystems of one machine: ext, xfs, btrfs, zfs, f2fs, tmpfs, overlayfs. On a network a process may see another's journal late, and
 * the other machine's boot id says nothing of whether this one has lost power.
 */
const LOCAL_FILESYSTEMS = new Set([0xef53, 0x58465342, 0x9123683e, 0x2fc12fc1, 0xf2f52010, 0x01021994, 0x794c7630])

interface Noted {
  readonly number: number
  readonly entry: JournalEntry
}

/**
 * `free`: has nothing that is not elsewhere. `filling`: takes entries. `settling`: its objects are being synced. `stuck`: that failed, and
 * is tried again with the next half.
 */
interface Half {
  readonly path: string
  readonly fd: number
  readonly inode: number
  state: 'free' | 'filling' | 'settling' | 'stuck'
  generation: number
  /** Where the next entry goes. */
  end: number
  since: number
  noted: Noted[]
  settled: Promise<void>
}

export interface JournalWorld {
  readonly disk: Disk
  readonly blocking: BlockingDisk
  /** The size of a half; for tests that fill many. */
  readonly halfBytes?: number
  /** Called when objects could not be synced though their bytes were written again. The journal keeps them. */
  readonly onTrouble: (error: unknown) => void
}

/**
 * Makes objects durable by one sync of a file that is there already, where a file of its own takes two syncs and changes of a folder.
 *
 * The journal of a process is two halves, used by turns. An object is noted before it gets its name, so that a power cut can leave no
 * object that is torn and not in the journal; nobody is told of it before both. When a half is full, or nothing happens, or somebody asks,
 * its objects are synced as files, and then the half is free. After a power cut, `restoreJournals` makes of the entries what is missing. A
 * process that is merely killed loses nothing: names and bytes are with the kernel.
 */
export class Journal {
  readonly #root: string
  readonly #world: JournalWorld
  readonly #halves: readonly Half[]
  readonly #temps: TempFiles
  #current: Half | undefined
  #numbered = 0
  #isBroken = false

  private constructor(root: string, temps: TempFiles, world: JournalWorld, halves: readonly Half[]) {
    this.#root = root
    this.#temps = temps
    this.#world = world
    this.#halves = halves
  }

  /** Undefined where there can be none: the filesystem or the system is not one that it is made for, or there is no room. */
  static async open(root: string, world: JournalWorld): Promise<Journal | undefined> {
    const { disk } = world
    const identity = ownIdentity()
    const halves: Half[] = []
    const folder = `${root}/${JOURNALS}`
    const name = `${process.pid}-${randomBytes(6).toString('hex')}`
    const temps = tempFiles(root, name, disk)
    try {
      // Without an id of the boot nobody could tell whether power was lost.
      if (identity.boot_id === null || !LOCAL_FILESYSTEMS.has((await statfs(root)).type)) return undefined
      await disk.mkdir(folder).catch((error) => {
        if (errnoOf(error) !== 'EEXIST') throw error
      })
      await syncPath(disk, root, asRoot)
      const header = encodeHeader(identity)
      for (const half of ['a', 'b']) halves.push(await openHalf(world, temps, `${folder}/${name}-${half}`, header))
      await syncPath(disk, folder)
      return new Journal(root, temps, world, halves)
    } catch {
      // Whatever the reason: it shows where objects are written, if it matters there.
      for (const half of halves) await removeHalf(disk, half)
      return undefined
    }
  }

  /** True if it takes no more entries. */
  get isBroken(): boolean {
    return this.#isBroken
  }

  /** The number of the last entry before the first whose object is not synced. */
  get settledUpTo(): number {
    const open = this.#halves.flatMap((half) => half.noted[0]?.number ?? [])
    return Math.min(this.#numbered + 1, ...open) - 1
  }

  /** Notes an object durably. Returns its number, or undefined if the journal cannot: then the caller syncs the object. */
  note(entry: JournalEntry): number | undefined {
    const { blocking } = this.#world
    if (this.#isBroken || entry.bytes.length > MAX_JOURNALED_BYTES) return undefined
    const half = this.#halfFor(entryBytes(entry))
    if (half === undefined) return undefined
    try {
      const block = encodeEntry(entry, half.generation)
      if (blocking.write(half.fd, block, 0, block.length, half.end) < block.length) throw new Error('short write')
      blocking.fdatasync(half.fd)
      this.#numbered += 1
      half.noted.push({ number: this.#numbered, entry })
      half.end += block.length
      return this.#numbered
    } catch {
      // What the disk has of this entry is unknown. Those before it were synced before.
      this.#isBroken = true
      return undefined
    }
  }

  /**
   * True if what was noted last counts. The next leader takes a journal away from a process that was stopped for long, and what is noted after
   * that is in a file that nobody will read.
   */
  isOwn(): boolean {
    const half = this.#current
    if (half !== undefined && this.#world.blocking.inodeOf(half.path) === half.inode) return true
    this.#isBroken = true
    return false
  }

  /** Takes back what was noted last: the object did not get its name. */
  retract(): void {
    const half = this.#current
    const last = half?.noted.pop()
    if (half === undefined || last === undefined) return
    const length = entryBytes(last.entry)
    half.end -= length
    try {
      const { blocking } = this.#world
      blocking.write(half.fd, new Uint8Array(BLOCK_BYTES), 0, BLOCK_BYTES, half.end)
      blocking.fdatasync(half.fd)
    } catch {
      this.#isBroken = true
    }
  }

  /** Resolves when what was noted before the call has been synced, or could not be: then `settledUpTo` says less. */
  async settle(): Promise<void> {
    const half = this.#current
    this.#current = undefined
    if (half !== undefined) this.#begin(half)
    for (const each of this.#halves) if (each.state === 'stuck') this.#begin(each)
    await Promise.all(this.#halves.map((each) => each.settled))
  }

  /** Settles everything, and removes the files if they are not needed any more. */
  async close(): Promise<void> {
    this.#isBroken = true
    await this.settle()
    for (const half of this.#halves) {
      if (half.state === 'free') await removeHalf(this.#world.disk, half)
      else await this.#world.disk.close(half.fd)
    }
  }

  #halfFor(bytes: number): Half | undefined {
    const half = this.#current
    const isFull = half !== undefined && half.end + bytes > (this.#world.halfBytes ?? HALF_BYTES)
    if (half !== undefined && !isFull && performance.now() - half.since < MAX_AGE_MS) return half
    const next = this.#halves.find((each) => each.state === 'free')
    // The other is still settling. One that is old and not full goes on.
    if (next === undefined) return isFull ? undefined : half
    if (half !== undefined) this.#begin(half)
    Object.assign(next, { state: 'filling', since: performance.now() })
    this.#current = next
    return next
  }

  #begin(half: Half): void {
    half.state = 'settling'
    half.settled = this.#settleHalf(half).then(
      () => {
        half.state = 'free'
      },
      (error: unknown) => {
        half.state = 'stuck'
        this.#world.onTrouble(error)
      },
    )
  }

  async #settleHalf(half: Half): Promise<void> {
    const { disk } = this.#world
    if (half.noted.length > 0) {
      const left = half.noted.values()
      await Promise.all(
        Array.from({ length: SYNCS_AT_ONCE }, async () => {
          for (const { entry } of left) await syncObject(disk, this.#temps, `${this.#root}/${entry.path}`, entry.bytes)
        }),
      )
      const folders = new Set(half.noted.map(({ entry }) => dirname(`${this.#root}/${entry.path}`)))
      for (const folder of folders) await syncPath(disk, folder).catch(undefinedIfMissing)
    }
    // An object that is deleted later must not come back with a power cut.
    await disk.write(half.fd, new Uint8Array(BLOCK_BYTES), 0, BLOCK_BYTES, BLOCK_BYTES)
    await disk.fsync(half.fd)
    half.generation += 1
    half.end = BLOCK_BYTES
    half.noted = []
  }
}

/** A half that has its name only when it is whole, so that nobody finds one without a beginning. */
async function openHalf(
  { disk, halfBytes = HALF_BYTES }: JournalWorld,
  temps: TempFiles,
  path: string,
  header: Uint8Array,
): Promise<Half> {
  // Zeros, not a hole: a sync of blocks that are there already has no metadata to write.
  const zeros = new Uint8Array(halfBytes)
  zeros.set(header)
  const temp = await temps.write(zeros)
  try {
    const inode = (await disk.fstat(temp.fd)).ino
    await disk.rename(temp.path, path)
    const settled = Promise.resolve()
    return { path, fd: temp.fd, inode, state: 'free', generation: 1, end: BLOCK_BYTES, since: 0, noted: [], settled }
  } catch (error) {
    await temp.remove()
    throw error
  }
}

async function removeHalf(disk: Disk, { path, fd }: Half): Promise<void> {
  await disk.close(fd)
  await disk.unlink(path).catch(() => undefined)
}
