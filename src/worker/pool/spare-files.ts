import { readdirSync, readFileSync } from 'node:fs'

/** The file descriptors that a server may need while its workers are busy: for connections, folders, and files that are written at once. */
export const SPARE_FILES = 32

/** True if at least this many file descriptors are free, or if the system does not report it. */
export function hasSpareFiles(): boolean {
  try {
    const limits = readFileSync('/proc/self/limits', 'latin1')
    const most = Number(/^Max open files\s+(\d+)/m.exec(limits)?.[1] ?? Number.POSITIVE_INFINITY)
    return readdirSync('/proc/self/fd').length + SPARE_FILES <= most
  } catch {
    return true // Not Linux; or not even these can be opened, and then no process can be started either.
  }
}
