import { readdirSync, readFileSync } from 'node:fs'
import { readProcessStat } from '../lib/process/process-stat.ts'

/**
 * Signals every process of a group. A worker leads its group, and the group keeps the number of the worker for as long as it
 * has members, even after the worker has ended.
 */
export function signalGroup(group: number, signal: NodeJS.Signals): boolean {
  try {
    process.kill(-group, signal)
    return true
  } catch {
    // The group is empty, which is what the caller wants.
    return false
  }
}

/**
 * The processes of a group that have not ended, the worker included. On Linux also processes that left the group, if their
 * environment contains the text `marked`.
 */
export function groupMembers(group: number, marked?: string): number[] {
  return process.platform === 'linux' ? fromProc(group, marked) : fromPs(group)
}

function fromProc(group: number, marked: string | undefined): number[] {
  const members: number[] = []
  const isMarked = (pid: number): boolean => marked !== undefined && readIfThere(`/proc/${pid}/environ`).includes(marked)
  // Descendants of the worker began after it did, so the environment of only a few processes has to be read.
  const since = Number(readProcessStat(group)?.beganAt)
  for (const name of readdirSync('/proc')) {
    const pid = Number(name)
    if (!Number.isInteger(pid)) continue
    const stat = readProcessStat(pid)
    if (stat === undefined || stat.state === 'Z') continue
    if (stat.group === group || (Number(stat.beganAt) >= since && isMarked(pid))) members.push(pid)
  }
  return members
}

function readIfThere(file: string): string {
  try {
    return readFileSync(file, 'latin1')
  } catch {
    return '' // It ended while we were looking, or it is not ours.
  }
}

function fromPs(group: number): number[] {
  // Loaded here and not above: a worker that starts nothing does not need it.
  const { execFileSync } = process.getBuiltinModule('node:child_process')
  const lines = execFileSync('ps', ['-A', '-o', 'pid=,pgid=,stat='], { encoding: 'utf8' }).split('\n')
  return lines
    .map((line) => line.trim().split(/\s+/))
    .filter(([, own, state]) => Number(own) === group && !state?.startsWith('Z'))
    .map(([pid]) => Number(pid))
}
