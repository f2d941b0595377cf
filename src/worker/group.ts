import { readdirSync, readFileSync } from 'node:fs'

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

/** The processes of a group that have not ended, its leader included. */
export function groupMembers(leader: number): number[] {
  return process.platform === 'linux' ? fromProc(leader) : fromPs(leader)
}

function fromProc(leader: number): number[] {
  const members: number[] = []
  for (const name of readdirSync('/proc')) {
    const pid = Number(name)
    if (!Number.isInteger(pid)) continue
    let stat: string
    try {
      stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    } catch {
      continue // It ended while we were looking.
    }
    // The second field is the program's name in brackets, which may hold anything, brackets and blanks included.
    const [state, , group] = stat.slice(stat.lastIndexOf(')') + 2).split(' ', 3)
    if (Number(group) === leader && state !== 'Z') members.push(pid)
  }
  return members
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
