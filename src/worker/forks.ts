import { readFileSync } from 'node:fs'
import { groupMembers } from './group.ts'

/**
 * Answers whether processes that user code started are still there. Looking through all processes of the machine takes
 * milliseconds, so it is done only when something was started since the last time: cheap to ask after every attempt.
 */
export function forkWatch(): () => boolean {
  const loaded = (process as unknown as { moduleLoadList?: readonly string[] }).moduleLoadList
  let checked = 0
  let canFork = loaded === undefined
  let waitedFor = childFaults()

  /** Without this module no JavaScript can start a process. */
  function mayFork(): boolean {
    for (; !canFork && loaded !== undefined && checked < loaded.length; checked++)
      canFork = loaded[checked] === 'NativeModule child_process'
    return canFork
  }

  /** A child that is still there is listed; one that has ended, and may have left others, has left its page faults. */
  function hasForked(): boolean {
    const before = waitedFor
    waitedFor = childFaults()
    return waitedFor === undefined || waitedFor !== before || listedChildren() !== ''
  }

  return () => mayFork() && hasForked() && groupMembers(process.pid).some((pid) => pid !== process.pid)
}

/** Page faults of all children that were waited for; undefined where the system does not tell. */
function childFaults(): string | undefined {
  try {
    const stat = readFileSync('/proc/self/stat', 'latin1')
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ', 9)[8]
  } catch {
    return undefined
  }
}

function listedChildren(): string | undefined {
  try {
    return readFileSync(`/proc/self/task/${process.pid}/children`, 'latin1')
  } catch {
    return undefined
  }
}
