import { readFileSync } from 'node:fs'

/** What the kernel reports about a process in /proc/{pid}/stat. */
export interface ProcessStat {
  /** One letter; Z for a process that has ended and whose parent has not collected its exit status yet. */
  readonly state: string
  readonly parent: number
  readonly group: number
  /** Page faults of all children that were waited for. */
  readonly childFaults: string
  /** When the process began, in the kernel's clock ticks. A later process with the same number has another value. */
  readonly beganAt: string
}

/** Undefined if the process is gone, if it is hidden from this user, or if the system has no /proc. */
export function readProcessStat(pid: number): ProcessStat | undefined {
  try {
    return processStat(readFileSync(`/proc/${pid}/stat`, 'latin1'))
  } catch {
    return undefined
  }
}

/** Undefined for text that is not such a line. */
export function processStat(line: string | undefined): ProcessStat | undefined {
  if (!line) return undefined
  // The second field is the program's name in brackets, which may hold anything, brackets and blanks included.
  const fields = line.slice(line.lastIndexOf(')') + 2).split(' ', 20)
  const [state, parent, group, , , , , , childFaults] = fields
  const beganAt = fields[19]
  if (!state || childFaults === undefined || beganAt === undefined) return undefined
  return { state, parent: Number(parent), group: Number(group), childFaults, beganAt }
}
