import { readFileSync, readlinkSync } from 'node:fs'
import { hostname } from 'node:os'

/** What tells a process from every other that ever had its number, on this machine or another one. Null is what a system does not tell. */
export interface ProcessIdentity {
  readonly pid: number
  /** When the process began, as the kernel counts: another process that is given the number later began at another time. */
  readonly since: string | null
  /** New with every start of the machine. */
  readonly boot_id: string | null
  /** In which namespace the number counts: two containers both have a process 1. */
  readonly pid_namespace: string | null
  readonly machine_id: string | null
  readonly host: string
}

export function ownIdentity(): ProcessIdentity {
  return {
    pid: process.pid,
    since: startOf(process.pid)?.since ?? null,
    boot_id: textOf('/proc/sys/kernel/random/boot_id'),
    pid_namespace: namespaceOf(),
    machine_id: textOf('/etc/machine-id'),
    host: hostname(),
  }
}

/** The namespace in which a machine starts has the same name everywhere: whoever is in it is in no container. */
const OUTSIDE_CONTAINERS = 'pid:[4026531836]'

/** True only if the process cannot be running any more. Everything that cannot be known is false. */
export function isProvenDead(other: ProcessIdentity, own: ProcessIdentity): boolean {
  if (other.boot_id === null || own.boot_id === null) return other.host === own.host && !exists(other.pid)
  if (other.boot_id === own.boot_id) return other.pid_namespace === own.pid_namespace && isGone(other)
  // The machine was started again. Containers with one image and one name may be anywhere, so for them this proves nothing.
  return (
    other.machine_id !== null &&
    other.machine_id === own.machine_id &&
    other.host === own.host &&
    other.pid_namespace === OUTSIDE_CONTAINERS &&
    own.pid_namespace === OUTSIDE_CONTAINERS
  )
}

function isGone({ pid, since }: ProcessIdentity): boolean {
  if (!exists(pid)) return true
  const start = startOf(pid)
  // What exists and cannot be read belongs to somebody else, on a system that hides it.
  if (start === undefined) return false
  return start.hasEnded || start.since !== since
}

function exists(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH'
  }
}

/**
 * The third and the 22nd field of the process's line in /proc. A process that has ended is listed for as long as whoever
 * started it has not asked how: in containers often for ever.
 */
function startOf(pid: number): { since: string | null; hasEnded: boolean } | undefined {
  const stat = textOf(`/proc/${pid}/stat`)
  if (stat === null) return undefined
  const [state = '', ...fields] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return { since: fields[18] ?? null, hasEnded: state === 'Z' || state === 'X' }
}

function namespaceOf(): string | null {
  try {
    return readlinkSync('/proc/self/ns/pid')
  } catch {
    return null
  }
}

function textOf(file: string): string | null {
  try {
    return readFileSync(file, 'utf8').trim() || null
  } catch {
    return null
  }
}
