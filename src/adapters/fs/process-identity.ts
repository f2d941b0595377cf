import { readFileSync, readlinkSync } from 'node:fs'
import { hostname } from 'node:os'
import { readProcessStat } from '../../lib/process/process-stat.ts'

/** Distinguishes a process from every other that ever had its number, on any machine. A field that the system does not report is null. */
export interface ProcessIdentity {
  readonly pid: number
  /** When the process began, in the kernel's clock ticks: a later process with the same number began at another time. */
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
    since: readProcessStat(process.pid)?.beganAt ?? null,
    boot_id: textOf('/proc/sys/kernel/random/boot_id'),
    pid_namespace: namespaceOf(),
    machine_id: textOf('/etc/machine-id'),
    host: hostname(),
  }
}

/** The namespace in which a machine starts has the same name everywhere: a process in it is not in a container. */
const OUTSIDE_CONTAINERS = 'pid:[4026531836]'

/** True only if the process cannot be running any more, and false in doubt. */
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
  const stat = readProcessStat(pid)
  // A process that exists and cannot be read belongs to another user, on a system that hides it.
  if (stat === undefined) return false
  // An ended process stays listed until its parent collects its exit status: in containers often for ever.
  return stat.state === 'Z' || stat.state === 'X' || stat.beganAt !== since
}

function exists(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH'
  }
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
