import { readdirSync, readFileSync, readlinkSync } from 'node:fs'

/*
 * What the system knows about processes, from /proc. A benchmark of the running system counts everybody who works for it:
 * Servo's workers, and the processes of PostgreSQL.
 */
export interface ProcessUsage {
  readonly cpuMs: number
  /** Times that a thread went to sleep, and therefore had been awake. */
  readonly wakeUps: number
  /** Calls that read or wrote a file or a pipe. */
  readonly reads: number
  readonly writes: number
  readonly residentBytes: number
  /** Pages that several share are counted once among them. */
  readonly ownBytes: number
  readonly processes: number
}

/** Linux counts processor time in hundredths of a second, whatever the machine. */
const MS_PER_TICK = 10

/** A process and all that come from it. */
export function processTree(root: number): number[] {
  const children = new Map<number, number[]>()
  for (const pid of allProcesses()) {
    const parent = Number(statOf(pid)[1])
    children.set(parent, [...(children.get(parent) ?? []), pid])
  }
  const tree = [root]
  for (const pid of tree) tree.push(...(children.get(pid) ?? []))
  return tree
}

/** Processor time of a tree since its processes began, those that have ended included. */
export const treeCpuMs = (root: number): number => sumOver(processTree(root), cpuMsOf)

export function treeUsage(root: number): ProcessUsage {
  const tree = processTree(root)
  const io = (name: string): number => sumOver(tree, (pid) => field(`/proc/${pid}/io`, name))
  return {
    cpuMs: sumOver(tree, cpuMsOf),
    wakeUps: sumOver(tree, wakeUpsOf),
    reads: io('syscr'),
    writes: io('syscw'),
    residentBytes: sumOver(tree, (pid) => field(`/proc/${pid}/smaps_rollup`, 'Rss') * 1_024),
    ownBytes: sumOver(tree, (pid) => field(`/proc/${pid}/smaps_rollup`, 'Pss') * 1_024),
    processes: tree.length,
  }
}

/** Processes that were started in a folder, or for it: its name is in their command line. */
export const processesOf = (folder: string): number[] =>
  allProcesses().filter((pid) => cwdOf(pid).startsWith(folder) || textOf(`/proc/${pid}/cmdline`).includes(folder))

const allProcesses = (): number[] =>
  namesIn('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)

function cpuMsOf(pid: number): number {
  const [user, system, childrenUser, childrenSystem] = statOf(pid).slice(11, 15).map(Number)
  return ((user ?? 0) + (system ?? 0) + (childrenUser ?? 0) + (childrenSystem ?? 0)) * MS_PER_TICK
}

const wakeUpsOf = (pid: number): number =>
  sumOver(namesIn(`/proc/${pid}/task`).map(Number), (thread) =>
    field(`/proc/${pid}/task/${thread}/status`, 'voluntary_ctxt_switches'),
  )

/** The fields after the name, which may itself hold spaces and brackets. */
function statOf(pid: number): string[] {
  const text = textOf(`/proc/${pid}/stat`)
  return text.slice(text.lastIndexOf(')') + 2).split(' ')
}

const field = (file: string, name: string): number =>
  Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(textOf(file))?.[1] ?? 0)

/** A process that has just ended has none of these any more. */
function orEmpty<T>(read: () => T, empty: T): T {
  try {
    return read()
  } catch {
    return empty
  }
}

const textOf = (file: string): string => orEmpty(() => readFileSync(file, 'latin1'), '')
const namesIn = (folder: string): string[] => orEmpty(() => readdirSync(folder), [])
const cwdOf = (pid: number): string => orEmpty(() => readlinkSync(`/proc/${pid}/cwd`), '')

const sumOver = (pids: readonly number[], of: (pid: number) => number): number =>
  pids.reduce((total, pid) => total + of(pid), 0)
