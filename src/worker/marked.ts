/**
 * What every process of an attempt bears in its environment: `{folder}:{instance}:{worker}:`, the folder that its server
 * works for, which start of the server, and which worker process. It is inherited by whatever the attempt starts, also by
 * what leaves the worker's group, and is there when nobody is left who remembers starting it.
 */
export const MARKER = 'SERVO_WORKER'

export interface Marked {
  /** What the marker begins with. */
  readonly prefix: string
  /** But not with this. */
  readonly unless?: string
  /** These are spared, whatever they bear. */
  readonly except?: readonly number[]
}

/**
 * Kills every process whose environment bears such a marker, stopped ones included, and says which. One look: what is forked
 * meanwhile is found by the next. Without /proc, and for processes that wiped their environment or belong to others, it
 * finds nothing.
 *
 * It needs nothing but itself, because the watchdog runs the text of it in a thread without modules: hence a reading of
 * /proc/{pid}/stat of its own, beside lib/process-stat.ts.
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
  /** When it began: tells it from another process that was given its number. */
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
    // Looked at once more, now that we know when it began.
    if (began === undefined || !isMarked(pid) || beganAt(pid) !== began) continue
    try {
      process.kill(pid, 'SIGKILL')
      ended.push(pid)
    } catch {
      // Gone by itself, or not ours to end.
    }
  }
  return ended
}
