import { type Disk, errnoOf, isMissing, MAX_TRANSFER_BYTES, OWN_FILE, syncPath, toCreate, undefinedIfMissing } from './disk.ts'

/** A complete, synced file that has no name of its own yet, only one in `.tmp`. */
export interface Temp {
  readonly path: string
  readonly fd: number
  /** Set when the file was renamed: its name in `.tmp` is gone. */
  renamed: boolean
  /** Closes the file and takes its name out of `.tmp`. Cannot fail: what stays is swept one day. */
  remove(): Promise<void>
}

export interface TempFiles {
  /** A name in `.tmp` that no other writer has. */
  newPath(): string
  write(bytes: Uint8Array): Promise<Temp>
  sweep(olderThanMs: number): Promise<number>
}

/** The files in `.tmp` of a store; `writer` is what makes this writer's names differ from all others. */
export function tempFiles(root: string, writer: string, disk: Disk): TempFiles {
  const folder = `${root}/.tmp`
  let count = 0

  async function write(bytes: Uint8Array): Promise<Temp> {
    const temp = await create()
    try {
      // A disk that fills up, or a size limit, shows first as a write shorter than requested.
      for (let done = 0; done < bytes.length; ) {
        const { bytesWritten } = await disk.write(temp.fd, bytes, done, Math.min(bytes.length - done, MAX_TRANSFER_BYTES), done)
        done += bytesWritten
      }
      await disk.fsync(temp.fd)
      return temp
    } catch (error) {
      await temp.remove()
      throw error
    }
  }

  function newPath(): string {
    count += 1
    return `${folder}/${writer}-${count}`
  }

  async function create(): Promise<Temp> {
    const path = newPath()
    const fd = await disk.open(path, toCreate, OWN_FILE).catch(async (error) => {
      if (errnoOf(error) !== 'ENOENT') throw error
      await disk.mkdir(folder).catch(unlessThere)
      return await disk.open(path, toCreate, OWN_FILE)
    })
    let removed: Promise<unknown> | undefined
    const temp: Temp = {
      path,
      fd,
      renamed: false,
      async remove() {
        removed ??= Promise.allSettled([disk.close(fd), temp.renamed ? undefined : disk.unlink(path)])
        await removed
      },
    }
    return temp
  }

  async function sweep(olderThanMs: number): Promise<number> {
    const entries = await disk.readdir(folder, { withFileTypes: true }).catch(undefinedIfMissing)
    const names = (entries ?? []).filter((entry) => entry.isFile()).map((entry) => entry.name)
    if (names.length === 0) return 0
    const now = await clockOfDisk()
    let swept = 0
    for (const name of names) {
      const path = `${folder}/${name}`
      try {
        const { mtimeMs } = await disk.lstat(path)
        if (now - mtimeMs < olderThanMs) continue
        await disk.unlink(path)
        swept += 1
      } catch (error) {
        // Its writer finished, or another sweeper was quicker.
        if (!isMissing(error)) throw error
      }
    }
    return swept
  }

  /** The time as the disk stamps it, which on a network mount is not our time. */
  async function clockOfDisk(): Promise<number> {
    const probe = await create()
    try {
      return (await disk.fstat(probe.fd)).mtimeMs
    } finally {
      await probe.remove()
    }
  }

  return { newPath, write, sweep }
}

/** Puts a synced file with these bytes in the place of what is there. The caller syncs the folder. */
export async function replaceFile(disk: Disk, temps: TempFiles, target: string, bytes: Uint8Array): Promise<void> {
  const temp = await temps.write(bytes)
  try {
    await disk.rename(temp.path, target)
    temp.renamed = true
  } finally {
    await temp.remove()
  }
}

/** Syncs a file, unless it was deleted. If its bytes were lost on the way to the disk, it is written again. */
export async function syncObject(disk: Disk, temps: TempFiles, target: string, bytes: Uint8Array): Promise<void> {
  try {
    await syncPath(disk, target).catch(undefinedIfMissing)
  } catch {
    // The kernel reports a lost write once and forgets it, so these bytes may be nowhere else.
    await replaceFile(disk, temps, target, bytes)
  }
}

function unlessThere(error: unknown): void {
  if (errnoOf(error) !== 'EEXIST') throw error
}
