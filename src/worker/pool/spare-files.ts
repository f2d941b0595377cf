import { readdirSync, readFileSync } from 'node:fs'

/** Connections, folders and files that are written at once: what a server may have to open while its workers are busy. */
export const SPARE_FILES = 32

/** Whether this process may open so many more files. Where the system does not tell, it is taken to be so. */
export function hasSpareFiles(): boolean {
  try {
    const limits = readFileSync('/proc/self/limits', 'latin1')
    const most = Number(/^Max open files\s+(\d+)/m.exec(limits)?.[1] ?? Number.POSITIVE_INFINITY)
    return readdirSync('/proc/self/fd').length + SPARE_FILES <= most
  } catch {
    return true // Not Linux; or there is not even one, and then no process can be started either.
  }
}
