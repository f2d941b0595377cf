/** What the kernel says of a process in /proc/{pid}/stat. */
export interface ProcessStat {
  /** One letter; Z for a process that has ended and that its parent has not asked about yet. */
  readonly state: string
  readonly parent: number
  readonly group: number
  /** Page faults of all children that were waited for. */
  readonly childFaults: string
  /** When it began, as the kernel counts: tells it from another process that is given its number later. */
  readonly beganAt: string
}

/** Undefined for text that is no such line: the process is gone, or the system has no /proc. */
export function processStat(line: string | undefined): ProcessStat | undefined {
  if (!line) return undefined
  // The second field is the program's name in brackets, which may hold anything, brackets and blanks included.
  const fields = line.slice(line.lastIndexOf(')') + 2).split(' ', 20)
  const [state, parent, group, , , , , , childFaults] = fields
  const beganAt = fields[19]
  if (!state || childFaults === undefined || beganAt === undefined) return undefined
  return { state, parent: Number(parent), group: Number(group), childFaults, beganAt }
}
