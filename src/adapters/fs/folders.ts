import { dirname } from 'node:path'
import { stateMoved } from '../../ports/state-moved.ts'
import { asFolder, asRoot, type Disk, errnoOf } from './disk.ts'

/** A folder of the store that is open and there to stay. */
interface Folder {
  /** Its file descriptor. */
  readonly fd: number
  /** Resolves when every name that was in the folder at the time of the call will survive a power cut. */
  sync(): Promise<void>
}

export interface Folders {
  /** Runs `work` with the folder at this path (empty for the root), made if need be; it stays open until `work` ends. */
  use<T>(path: string, work: (folder: Folder) => Promise<T>): Promise<T>
  /** Lets go of all folders; those in use close when their work ends. Using one afterwards opens it again. */
  close(): Promise<void>
}

/** How many folders stay open: enough for every table of a workspace, far below the usual limit of 1,024 open files. */
export const MAX_OPEN_FOLDERS = 128

interface OpenFolder extends Folder {
  /** Resolves when it is open. */
  readonly opened: Promise<number>
  users: number
  retired: boolean
}

/**
 * The open folders of one store. Syncing a folder needs a file descriptor, and opening one for every object would cost
 * as much as linking it. A folder must not be removed by hand and made anew while a store has it open: the handle would
 * go on syncing the old one. The store itself never removes folders.
 */
export function openFolders(root: string, disk: Disk, makesRoot: boolean): Folders {
  // In order of last use, because a Map remembers insertion: the first is the one to close.
  const open = new Map<string, OpenFolder>()

  async function use<T>(path: string, work: (folder: Folder) => Promise<T>): Promise<T> {
    const folder = open.get(path) ?? opening(path === '' ? openRoot() : openInParent(path), disk)
    open.delete(path)
    open.set(path, folder)
    // Counted before anything is awaited, so that it is not closed between finding and using it.
    folder.users += 1
    try {
      if (open.size > MAX_OPEN_FOLDERS) await retire([open.keys().next().value!])
      await folder.opened
      return await work(folder)
    } catch (error) {
      // Perhaps the folder is gone, or its disk is failing. Forget what is remembered of it and of the folders above.
      await retire([...open.keys()])
      throw error
    } finally {
      folder.users -= 1
      if (folder.retired && folder.users === 0) await closeFolder(folder)
    }
  }

  function openInParent(path: string): Promise<number> {
    const slash = path.lastIndexOf('/')
    return use(slash === -1 ? '' : path.slice(0, slash), async (parent) => {
      const fd = await openOrMake(`${root}/${path}`)
      // Also when another process made the folder: it may be an instant old and its maker dead before its own sync, and
      // what we write inside would be lost with it.
      return await keepIf(fd, () => parent.sync())
    })
  }

  async function openRoot(): Promise<number> {
    const fd = await disk.open(root, asRoot).catch(async (error) => {
      if (errnoOf(error) !== 'ENOENT') throw error
      if (!makesRoot) throw stateMoved(root)
      await makeWithParents(root)
      return await disk.open(root, asRoot)
    })
    return await keepIf(fd, () => syncAbove(root))
  }

  async function openOrMake(path: string): Promise<number> {
    try {
      return await disk.open(path, asFolder)
    } catch (error) {
      if (errnoOf(error) !== 'ENOENT') throw error
    }
    await makeUnlessThere(path)
    return await disk.open(path, asFolder)
  }

  async function makeWithParents(path: string): Promise<void> {
    try {
      await makeUnlessThere(path)
    } catch (error) {
      if (errnoOf(error) !== 'ENOENT' || dirname(path) === path) throw error
      await makeWithParents(dirname(path))
      await makeUnlessThere(path)
    }
  }

  async function makeUnlessThere(path: string): Promise<void> {
    try {
      await disk.mkdir(path)
    } catch (error) {
      if (errnoOf(error) !== 'EEXIST') throw error
    }
  }

  /** Makes the way to the root durable, even if another program made it; a folder we may not open is one we did not make. */
  async function syncAbove(path: string): Promise<void> {
    const above = dirname(path)
    if (above === path) return
    try {
      const fd = await disk.open(above, asRoot)
      await disk.fsync(fd).finally(() => disk.close(fd))
    } catch (error) {
      if (!['EACCES', 'EPERM', 'EROFS', 'EINVAL'].includes(errnoOf(error) ?? '')) throw error
    }
    await syncAbove(above)
  }

  async function keepIf(fd: number, durable: () => Promise<void>): Promise<number> {
    try {
      await durable()
      return fd
    } catch (error) {
      await disk.close(fd)
      throw error
    }
  }

  async function retire(paths: string[]): Promise<void> {
    const unused: OpenFolder[] = []
    for (const path of paths) {
      const folder = open.get(path)!
      open.delete(path)
      folder.retired = true
      if (folder.users === 0) unused.push(folder)
    }
    await Promise.all(unused.map(closeFolder))
  }

  async function closeFolder(folder: OpenFolder): Promise<void> {
    // Nothing was written through this descriptor; if it did not open, or does not close, there is nothing to lose.
    await folder.opened.then(disk.close).catch(() => {})
  }

  return { use, close: () => retire([...open.keys()]) }
}

function opening(fd: Promise<number>, disk: Disk): OpenFolder {
  let running: Promise<void> | undefined
  let waiting: Promise<void> | undefined
  let handle = -1

  // This is the first listener, so `handle` is there before `use` lets a caller in, and a sync is handed to the system
  // at once: a microtask later it would queue behind the clean-up that runs beside it, for a tenth fewer objects a second.
  const opened = fd.then((number) => {
    handle = number
    return number
  })

  function start(): Promise<void> {
    const mine = disk.fsync(handle).finally(() => {
      if (running === mine) running = undefined
    })
    running = mine
    return mine
  }

  // One sync runs at a time, and one more serves all callers that came in the meantime: the first may have missed their names.
  // With 16 writers in a folder this is a third more objects a second. If the first fails, so do the callers that waited;
  // the kernel reports a lost write once, and the second sync could succeed over the same loss.
  function sync(): Promise<void> {
    if (running === undefined) return start()
    waiting ??= running
      .finally(() => {
        // From here on the second is under way itself, and a caller that comes now needs a third.
        waiting = undefined
      })
      .then(start)
    return waiting
  }

  return {
    opened,
    get fd() {
      return handle
    },
    sync,
    users: 0,
    retired: false,
  }
}
