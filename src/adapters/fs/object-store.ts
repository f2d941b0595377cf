import { randomBytes } from 'node:crypto'
import { resolve } from 'node:path'
import { checkListing, checkPath, checkRange } from '../../ports/object-path.ts'
import type { ListedObject, ObjectStore } from '../../ports/object-store.ts'
import { type Disk, errnoOf, isMissing, MAX_TRANSFER_BYTES, nodeDisk, toRead, undefinedIfMissing } from './disk.ts'
import { type Attempted, explainFailure } from './failure.ts'
import { openFolders } from './folders.ts'
import { restoreJournals } from './journal/restore.ts'
import { linkUnlessThere } from './link.ts'
import { type Temp, tempFiles } from './temp.ts'
import { foldersIn, walk } from './walk.ts'
import type { ObjectWriter } from './writer.ts'

export interface FsStore extends ObjectStore {
  /** The folder, as an absolute path. */
  readonly dir: string
  /**
   * Removes temporary files that a killed process left, if nothing was written to them for this long, and returns how many.
   * Give writers in other processes their time: a write whose file is swept fails with `folder_gone`, harmlessly.
   */
  sweepTemp(olderThanMs: number): Promise<number>
  /**
   * Takes over the journals of all other processes, for the process that leads now: what they have is synced, and they are removed. After a
   * power cut any store does that by itself, before it reads or writes.
   */
  takeJournals(): Promise<void>
  /** Leaves nothing that only a journal has, and closes the folders kept open. The store can be used again and opens them anew. */
  close(): Promise<void>
}

/**
 * Objects as files in a folder, for any number of processes on any number of stores over the same folder.
 *
 * An object appears under its name in one step, complete and synced, or not at all: it is written to `.tmp`, synced,
 * and then linked (create) or renamed (put) into place, and the folder is synced before the call returns. With a journal (journal/journal.ts)
 * the object's bytes are synced there instead, and the file later. A crash can leave files in `.tmp` and journals, and nothing else.
 *
 * No path names anything outside the folder: there is no `..` in it and no leading slash. Symlinks are never objects. One
 * in the place of an object is not followed by any method, one on the way to a new object is refused, and listings pass
 * them by. What remains: a read or delete whose path leads through a symlinked folder goes where it points, as for any
 * program, so no other program should be able to write here. The folder itself may be a symlink.
 *
 * The filesystem must have hard links, and should be case-sensitive. Windows cannot sync a folder and is not supported.
 */
export function fsStore(
  dir: string,
  disk: Disk = nodeDisk,
  /** Writes small objects in fewer steps; a process that writes much has one. */
  writer?: ObjectWriter,
  /** False if whoever uses the store has made the folder: one that is gone was moved or deleted, and is not made again. */
  makesRoot = true,
): FsStore {
  const root = resolve(dir)
  // Two processes in two containers may both be number 1, so the number alone would not be unique in a shared folder.
  const temps = tempFiles(root, `${process.pid}-${randomBytes(6).toString('hex')}`, disk)
  const folders = openFolders(root, disk, makesRoot)
  const files = { root, disk, temps, folders }
  let restored: Promise<void> | 'yes' | undefined

  /** Before anything is read or written for the first time. */
  async function restore(): Promise<void> {
    restored ??= restoreJournals(files, 'lost').then(
      () => {
        restored = 'yes'
      },
      (error: unknown) => {
        restored = undefined
        throw error
      },
    )
    await restored
  }

  async function attempt<T>(verb: Attempted['verb'], path: string, work: (attempted: Attempted) => Promise<T>): Promise<T> {
    const attempted = { verb, path, dir: root }
    try {
      if (restored !== 'yes') await restore()
      return await work(attempted)
    } catch (error) {
      throw explainFailure(error, attempted)
    }
  }

  /** Writes bytes to a temporary file, has `place` give it its name, and makes the name durable. */
  async function write<T>(path: string, bytes: Uint8Array, place: (temp: Temp, target: string) => Promise<T>): Promise<T> {
    const once = () =>
      folders.use(folderOf(path), async (folder) => {
        const temp = await temps.write(bytes)
        try {
          const outcome = await place(temp, `${root}/${path}`)
          // Side by side, because neither needs the other: a temporary name that survives a power cut is swept one day.
          const [synced] = await Promise.allSettled([folder.sync(), temp.remove()])
          if (synced.status === 'rejected') throw synced.reason
          return outcome
        } finally {
          await temp.remove()
        }
      })
    try {
      return await once()
    } catch (error) {
      // A folder was removed under us. It is forgotten by now, so a second try makes it again.
      if (errnoOf(error) === 'ENOENT') return await once()
      throw error
    }
  }

  /** Writes in the writer's thread, if that is free. An error there shows again when the write is done here. */
  async function createElsewhere(path: string, bytes: Uint8Array): Promise<'written' | 'not_written'> {
    if (writer === undefined) return 'not_written'
    return await folders.use(folderOf(path), async (folder) => {
      const outcome = await writer.write({ temp: temps.newPath(), target: `${root}/${path}`, path, bytes, folder: folder.fd })
      if (typeof outcome === 'object') throw outcome.error
      return outcome ?? 'not_written'
    })
  }

  async function read(path: string, start: number, length: number): Promise<Uint8Array | undefined> {
    const fd = await disk.open(`${root}/${path}`, toRead).catch(undefinedIfMissing)
    if (fd === undefined) return undefined
    try {
      const stat = await disk.fstat(fd)
      if (!stat.isFile()) return undefined
      const bytes = new Uint8Array(Math.max(0, Math.min(length, stat.size - start)))
      let done = 0
      while (done < bytes.length) {
        const { bytesRead } = await disk.read(fd, bytes, done, Math.min(bytes.length - done, MAX_TRANSFER_BYTES), start + done)
        if (bytesRead === 0) break
        done += bytesRead
      }
      return done === bytes.length ? bytes : bytes.slice(0, done)
    } finally {
      await disk.close(fd)
    }
  }

  async function* listing(prefix: string, after: string): AsyncGenerator<ListedObject> {
    try {
      if (restored !== 'yes') await restore()
      yield* walk(disk, root, prefix, after)
    } catch (error) {
      throw explainFailure(error, { verb: 'list', path: prefix, dir: root })
    }
  }

  async function* folderNames(prefix: string): AsyncGenerator<string> {
    try {
      if (restored !== 'yes') await restore()
      yield* await foldersIn(disk, root, prefix)
    } catch (error) {
      throw explainFailure(error, { verb: 'list', path: prefix, dir: root })
    }
  }

  return {
    dir: root,

    async create(path, bytes) {
      checkPath(path)
      return await attempt('create', path, async (attempted) => {
        if ((await createElsewhere(path, bytes)) === 'written') return 'written'
        return await write(path, bytes, (temp, target) => linkUnlessThere(disk, temp, target, attempted))
      })
    },

    async put(path, bytes) {
      checkPath(path)
      await attempt('put', path, async () => {
        await writer?.settled(`${root}/${path}`)
        await write(path, bytes, async (temp, target) => {
          await disk.rename(temp.path, target)
          temp.renamed = true
        })
      })
    },

    async get(path) {
      checkPath(path)
      return await attempt('read', path, () => read(path, 0, Number.POSITIVE_INFINITY))
    },

    async getRange(path, start, length) {
      checkPath(path)
      checkRange(path, start, length)
      return await attempt('read', path, () => read(path, start, length))
    },

    async size(path) {
      checkPath(path)
      const stat = await attempt('read', path, () => disk.lstat(`${root}/${path}`).catch(undefinedIfMissing))
      return stat?.isFile() ? stat.size : undefined
    },

    list(prefix, options = {}) {
      checkListing(prefix, options.after)
      return listing(prefix, options.after ?? '')
    },

    folders(prefix) {
      checkListing(prefix, undefined)
      return folderNames(prefix)
    },

    async delete(path) {
      checkPath(path)
      // Not synced: an object that is back after a power cut is whole, and garbage that the next collection deletes again.
      await attempt('delete', path, async () => {
        await writer?.settled(`${root}/${path}`)
        await disk.unlink(`${root}/${path}`).catch(unlessNoObject)
      })
    },

    async sweepTemp(olderThanMs) {
      return await attempt('sweep', '', () => temps.sweep(olderThanMs))
    },

    async takeJournals() {
      await attempt('sweep', '', () => restoreJournals(files, 'all'))
    },

    async close() {
      await writer?.close()
      await folders.close()
    },
  }

  async function unlessNoObject(error: NodeJS.ErrnoException): Promise<void> {
    if (isMissing(error)) return
    // A folder of that name is not an object; Linux reports EISDIR, others EPERM, which can also mean missing permission.
    const folder = errnoOf(error) === 'EISDIR' || (errnoOf(error) === 'EPERM' && (await disk.lstat(error.path!)).isDirectory())
    if (!folder) throw error
  }
}

/** The folder of an object; empty for the root. */
const folderOf = (path: string): string => path.slice(0, Math.max(path.lastIndexOf('/'), 0))
