import { readdirSync, readFileSync } from 'node:fs'
import { type ProcessStat, processStat } from '../lib/process-stat.ts'

/**
 * Signals every process of a group. The leader of a worker's group is the worker itself, whose number the group bears for as
 * long as it has members, also when the leader has gone.
 */
export function signalGroup(leader: number, signal: NodeJS.Signals): boolean {
  try {
    process.kill(-leader, signal)
    return true
  } catch {
    // Nobody is left, which is what the caller is after.
    return false
  }
}

/**
 * The processes of a group that have not ended, its leader included. Where the system tells, also those that have left the
 * group and bear this in their environment.
 */
export function groupMembers(leader: number, marked?: string): number[] {
  return process.platform === 'linux' ? fromProc(leader, marked) : fromPs(leader)
}

function fromProc(leader: number, marked: string | undefined): number[] {
  const members: number[] = []
  const isMarked = (pid: number): boolean => marked !== undefined && readIfThere(`/proc/${pid}/environ`).includes(marked)
  // What the leader started began after it did: only few processes are asked for their environment.
  const since = Number(statOf(leader)?.beganAt)
  for (const name of readdirSync('/proc')) {
    const pid = Number(name)
    if (!Number.isInteger(pid)) continue
    const stat = statOf(pid)
    if (stat === undefined || stat.state === 'Z') continue
    if (stat.group === leader || (Number(stat.beganAt) >= since && isMarked(pid))) members.push(pid)
  }
  return members
}

const statOf = (pid: number): ProcessStat | undefined => processStat(readIfThere(`/proc/${pid}/stat`))

function readIfThere(file: string): string {
  try {
    return readFileSync(file, 'latin1')
  } catch {
    return '' // It ended while we were looking, or it is not ours.
  }
}

function fromPs(leader: number): number[] {
  // Asked for only here: a worker that starts nothing should not load it.
  const { execFileSync } = process.getBuiltinModule('node:child_process')
  const lines = execFileSync('ps', ['-A', '-o', 'pid=,pgid=,stat='], { encoding: 'utf8' }).split('\n')
  return lines
    .map((line) => line.trim().split(/\s+/))
    .filter(([, group, state]) => Number(group) === leader && !state?.startsWith('Z'))
    .map(([pid]) => Number(pid))
}
