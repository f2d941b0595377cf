import { type Disk, errnoOf, syncPath, undefinedIfMissing } from './disk.ts'
import { type Attempted, hardLinksUnsupported, pathConflict } from './failure.ts'
import type { Temp } from './temp.ts'

/**
 * Gives a finished file its name unless the name is taken: the one step in which an object comes to be.
 *
 * link() is the only call Node offers that is atomic, exclusive and leaves nothing half done. An exclusive open of the
 * final name shows a half object to readers and leaves it after a crash; rename replaces what is there; a lock file
 * outlives its killed owner. So where a filesystem has no hard links, we throw an error instead of promising too much.
 *
 * The caller syncs the folder in both cases. A caller that gets `exists` relies on the object being there tomorrow, and its
 * creator, in another process, may not have come to its own sync yet; or only its journal has the bytes, so they are synced here.
 */
export async function linkUnlessThere(
  disk: Disk,
  temp: Temp,
  target: string,
  attempted: Attempted,
): Promise<'written' | 'exists'> {
  try {
    await disk.link(temp.path, target)
    return 'written'
  } catch (error) {
    const errno = errnoOf(error)
    if (['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS'].includes(errno ?? '') && !(await hardLinksWork(disk, temp))) {
      throw hardLinksUnsupported(attempted, error)
    }
    if (errno !== 'EEXIST') throw error
  }
  // NFS repeats a request whose answer was lost, and the repeat finds our own link: then our file has two names.
  if ((await disk.fstat(temp.fd)).nlink > 1) return 'written'
  const there = await disk.lstat(target).catch(undefinedIfMissing)
  if (there !== undefined && !there.isFile()) throw pathConflict(attempted)
  await syncPath(disk, target).catch(undefinedIfMissing)
  return 'exists'
}

/** EPERM also comes from a folder marked immutable; a link inside `.tmp` distinguishes the two. */
async function hardLinksWork(disk: Disk, temp: Temp): Promise<boolean> {
  const probe = `${temp.path}-probe`
  try {
    await disk.link(temp.path, probe)
    await disk.unlink(probe)
    return true
  } catch {
    return false
  }
}
