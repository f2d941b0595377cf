import * as fs from 'node:fs'
import { promisify } from 'node:util'

/** The ledger, logs and values may have anything in them: what we make is for its owner alone, whatever the umask is. */
export const OWN_FOLDER = 0o700
export const OWN_FILE = 0o600

/** Up to this size, copying into the page cache is much faster than a hop to another thread. */
const SMALL_BYTES = 64 << 10

const readElsewhere = promisify(fs.read)
const writeElsewhere = promisify(fs.write)
const fstat = promisify(fs.fstat)
const lstat = promisify(fs.lstat)
const mkdir = promisify(fs.mkdir)
const readdir = promisify(fs.readdir)

/**
 * The system calls this adapter makes, one function each, so that a test can make any of them fail.
 *
 * They are the asynchronous ones. Synchronous calls save the hops to libuv's threads: 1.3 to 1.6 times as many creates
 * a second with one in flight, the same with sixteen. They also stop the event loop for as long as the disk takes, and
 * not for fsync alone: a mere link() waits while the journal commits (loop delay p99 of 8 to 16 ms). Below a factor of
 * two that is a bad bargain for a process that also answers HTTP. Plain callbacks made into promises are a little
 * quicker than `fs/promises`, whose file handles cost an object and a finalizer each. Closing a file and writing a small
 * one into memory wait for no disk, so those two stay here: a hop to another thread and back costs ten times as much.
 */
export const nodeDisk = {
  open: promisify(fs.open),
  close: async (fd: number): Promise<void> => fs.closeSync(fd),
  read: (fd: number, into: Uint8Array, offset: number, length: number, position: number): Promise<{ bytesRead: number }> =>
    readElsewhere(fd, into, offset, length, position),
  async write(
    fd: number,
    from: Uint8Array,
    offset: number,
    length: number,
    position: number,
  ): Promise<{ bytesWritten: number }> {
    if (length > SMALL_BYTES) return await writeElsewhere(fd, from, offset, length, position)
    return { bytesWritten: fs.writeSync(fd, from, offset, length, position) }
  },
  fsync: promisify(fs.fsync),
  fstat: (fd: number): Promise<fs.Stats> => fstat(fd),
  lstat: (path: string): Promise<fs.Stats> => lstat(path),
  link: promisify(fs.link),
  rename: promisify(fs.rename),
  unlink: promisify(fs.unlink),
  mkdir: (path: string): Promise<void> => mkdir(path, OWN_FOLDER),
  readdir: (path: string, options: { withFileTypes: true }): Promise<fs.Dirent[]> => readdir(path, options),
}

export type Disk = typeof nodeDisk

const { O_RDONLY, O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW, O_DIRECTORY, O_NONBLOCK } = fs.constants

// How files and folders are opened. A symlink in the last place is neither an object nor a folder of ours; the root of
// the store and what is above it belong to the operator, who may use symlinks.
export const toRead = O_RDONLY | O_NOFOLLOW
/** This also covers a pipe: opening one would otherwise wait for a writer. */
export const toReadAtOnce = toRead | O_NONBLOCK
export const toCreate = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW
export const asFolder = O_RDONLY | O_DIRECTORY | O_NOFOLLOW
export const asRoot = O_RDONLY | O_DIRECTORY

/** Linux moves at most 2 GiB minus a page in one call, and Node refuses a request for more than 2 GiB. */
export const MAX_TRANSFER_BYTES = 2 ** 30

/** Syncs a file or folder. */
export async function syncPath(disk: Disk, path: string, flags = toRead): Promise<void> {
  const fd = await disk.open(path, flags)
  await disk.fsync(fd).finally(() => disk.close(fd))
}

/** The errno name of a failed call (`ENOSPC`), if it was one. */
export function errnoOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined
}

/** The error codes for an object that does not exist: no such name, a parent that is not a folder, a symlink in its place. */
export function isMissing(error: unknown): boolean {
  const errno = errnoOf(error)
  return errno === 'ENOENT' || errno === 'ENOTDIR' || errno === 'ELOOP'
}

/** For `.catch` on a call whose subject may not be there. */
export function undefinedIfMissing(error: unknown): undefined {
  if (isMissing(error)) return undefined
  throw error
}
