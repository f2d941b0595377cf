/**
 * The environment variable that marks every process of an attempt: `{folder}:{instance}:{worker}:`, which is the folder that its
 * server works for, the start of the server, and the worker process. Everything that the attempt starts inherits it, even a
 * process that leaves the worker's group, so it can be found when no process is left that remembers starting it.
 */
export const MARKER = 'SERVO_WORKER'

export interface Marked {
  /** The marker begins with this. */
  readonly prefix: string
  /** Processes whose marker begins with this are spared. */
  readonly unless?: string
  /** These processes are spared, whatever their marker. */
  readonly except?: readonly number[]
}

/**
 * Kills every process whose environment has such a marker, stopped ones included, and returns their numbers. It looks once: a
 * process that is forked meanwhile is found by the next call. It finds nothing without /proc, and no process that wiped its
 * environment or belongs to another user.
 *
 * The watchdog runs the source text of this function in a thread without modules. So it imports nothing, and reads
 * /proc/{pid}/stat itself although lib/process/process-stat.ts does that too.
 */
export function endMarked(name: string, { prefix, unless, except = [] }: Marked): number[] {
  const { readdirSync, readFileSync } = process.getBuiltinModule('node:fs')
  const read = (file: string): string => {
    try {
      return readFileSync(file, 'latin1')
    } catch {
      return '' // It ended while we were looking, it is not ours, or there is no /proc.
    }
  }
  /** When it began, which distinguishes it from a later process with the same number. */
  const beganAt = (pid: number): string | undefined => {
    const stat = read(`/proc/${pid}/stat`)
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ', 20)
    return fields[0] === 'Z' ? undefined : fields[19]
  }
  const isMarked = (pid: number): boolean => {
    const markers = `\0${read(`/proc/${pid}/environ`)}`.split(`\0${name}=`, 2)
    const marker = markers[1]?.split('\0', 1)[0] ?? ''
    return marker.startsWith(prefix) && (unless === undefined || !marker.startsWith(unless))
  }
  let names: string[] = []
  try {
    names = readdirSync('/proc')
  } catch {
    // Not Linux.
  }
  const ended: number[] = []
  for (const pid of names.map(Number)) {
    if (!Number.isInteger(pid) || except.includes(pid) || !isMarked(pid)) continue
    const began = beganAt(pid)
    // Checked once more: its number may have gone to another process before we knew when it began.
    if (began === undefined || !isMarked(pid) || beganAt(pid) !== began) continue
    try {
      process.kill(pid, 'SIGKILL')
      ended.push(pid)
    } catch {
      // It ended by itself, or belongs to another user.
    }
  }
  return ended
}
