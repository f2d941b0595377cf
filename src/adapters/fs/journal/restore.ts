import { checkPath } from '../../../ports/object-path.ts'
import { type Disk, errnoOf, MAX_TRANSFER_BYTES, syncPath, toRead, undefinedIfMissing } from '../disk.ts'
import type { Folders } from '../folders.ts'
import { ownIdentity } from '../process-identity.ts'
import { replaceFile, syncObject, type TempFiles } from '../temp.ts'
import { BLOCK_BYTES, entriesIn, type JournalEntry, readHeader } from './entry.ts'
import { JOURNALS } from './journal.ts'

/** Ends the name of a journal that was taken from its process. */
const TAKEN = '.taken'

interface StoreFiles {
  readonly root: string
  readonly disk: Disk
  readonly temps: TempFiles
  readonly folders: Folders
}

/**
 * Makes of journals what a power cut took: an object that is missing or torn is written again. `lost` looks at the journals that were
 * there before this machine was started: any reader calls for that. `all` also takes over those of processes that may still live, and
 * is for the leader: without a power cut nothing is missing, so what is not there was deleted, and the others are synced.
 *
 * Any number of processes may do this at once, or begin and be killed. A journal is renamed before it is read, which its process notices
 * before it relies on it again, and removed when everything in it is synced.
 */
export async function restoreJournals(files: StoreFiles, which: 'lost' | 'all'): Promise<void> {
  const { root, disk } = files
  const folder = `${root}/${JOURNALS}`
  const found = await disk.readdir(folder, { withFileTypes: true }).catch(undefinedIfMissing)
  const names = (found ?? []).filter((entry) => entry.isFile()).map((entry) => entry.name)
  if (names.length === 0) return
  const { boot_id } = ownIdentity()
  for (const name of names.sort()) {
    const path = `${folder}/${name}`
    // Another process may have taken it meanwhile, and may not be done; or it is, and there is no such file any more.
    const header = (await read(disk, path, BLOCK_BYTES)) ?? (await read(disk, `${path}${TAKEN}`, BLOCK_BYTES))
    if (header === undefined) continue
    const isLost = readHeader(header)?.boot_id !== boot_id
    if (isLost || which === 'all') await restoreJournal(files, path, isLost)
  }
}

async function restoreJournal(files: StoreFiles, path: string, isLost: boolean): Promise<void> {
  const { disk } = files
  const taken = path.endsWith(TAKEN) ? path : `${path}${TAKEN}`
  try {
    if (taken !== path) await disk.rename(path, taken).catch(undefinedIfMissing)
    const journal = await read(disk, taken)
    if (journal === undefined) return
    const entries = entriesIn(journal)
    for (const [at, entry] of entries.entries()) {
      checkPath(entry.path)
      if (isLost) await restoreObject(files, entry, at === entries.length - 1)
      else await syncObject(disk, files.temps, `${files.root}/${entry.path}`, entry.bytes)
    }
    for (const each of new Set(entries.map((entry) => folderOf(entry.path)))) {
      if (isLost) await files.folders.use(each, (folder) => folder.sync())
      else await syncPath(disk, `${files.root}/${each}`).catch(undefinedIfMissing)
    }
    await disk.unlink(taken).catch(undefinedIfMissing)
  } catch (error) {
    // A folder that cannot be written to can still be read. Whoever writes finds the reason there.
    if (!['EROFS', 'EACCES', 'EPERM'].includes(errnoOf(error) ?? '')) throw error
  }
}

async function restoreObject(files: StoreFiles, entry: JournalEntry, isLast: boolean): Promise<void> {
  const { root, disk, temps } = files
  const target = `${root}/${entry.path}`
  const there = await read(disk, target)
  if (there !== undefined && Buffer.compare(there, entry.bytes) === 0) return
  // Of the last entry it is not known whether its object got the name. If another has it, that one counts.
  if (there !== undefined && isLast && !isTorn(there, entry.bytes)) return
  await files.folders.use(folderOf(entry.path), () => replaceFile(disk, temps, target, entry.bytes))
}

/** True if `there` is what a power cut can leave of `bytes`: parts of them are missing or zero. */
function isTorn(there: Buffer, bytes: Uint8Array): boolean {
  return there.length <= bytes.length && there.every((byte, at) => byte === 0 || byte === bytes[at])
}

async function read(disk: Disk, path: string, length = MAX_TRANSFER_BYTES): Promise<Buffer | undefined> {
  const fd = await disk.open(path, toRead).catch(undefinedIfMissing)
  if (fd === undefined) return undefined
  try {
    const bytes = Buffer.alloc(Math.min((await disk.fstat(fd)).size, length))
    let done = 0
    while (done < bytes.length) {
      const { bytesRead } = await disk.read(fd, bytes, done, bytes.length - done, done)
      if (bytesRead === 0) break
      done += bytesRead
    }
    return bytes.subarray(0, done)
  } finally {
    await disk.close(fd)
  }
}

const folderOf = (path: string): string => path.slice(0, Math.max(path.lastIndexOf('/'), 0))
