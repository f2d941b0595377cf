import { statfsSync, watch } from 'node:fs'

/**
 * Calls `changed` with the name of an entry that appeared, went or changed in a folder, or null when the system does not name it.
 * The function it returns ends that. Returns undefined if the folder cannot be watched, and calls `deaf` when it no longer can. It
 * does not keep the process alive.
 */
export type WatchFolder = (folder: string, changed: (name: string | null) => void, deaf: () => void) => (() => void) | undefined

/** File systems that do not report the changes of other machines: NFS, SMB (three of them), AFS, Ceph, FUSE, 9P, GPFS and Lustre. */
const NETWORKED = new Set([
  0x6969, 0x517b, 0xff534d42, 0xfe534d42, 0x5346414f, 0xc36400, 0x65735546, 0x1021997, 0x47504653, 0xbd00bd0,
])

export const watchFolder: WatchFolder = (folder, changed, deaf) => {
  try {
    if (NETWORKED.has(statfsSync(folder).type)) return undefined
    const watcher = watch(folder, { persistent: false }, (_, name) => changed(name))
    watcher.on('error', () => {
      watcher.close()
      deaf()
    })
    return () => watcher.close()
  } catch {
    // There is no such folder, or the system has no more watches to give.
    return undefined
  }
}
