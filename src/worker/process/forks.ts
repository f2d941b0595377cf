import { openSync, readSync } from 'node:fs'
import { processStat } from '../../lib/process/process-stat.ts'
import { groupMembers } from '../group.ts'
import { MARKER } from '../marked.ts'

/**
 * Returns a function that is true while processes that user code started are running. To look through all processes of
 * the machine takes milliseconds, so that is done only if one was started since the last call. Otherwise the call is cheap
 * enough for the end of every attempt.
 */
export function forkWatch(marker: string | undefined): () => boolean {
  const loaded = loadedModules()
  let checked = 0
  let canFork = loaded === undefined
  const stat = systemFile('/proc/self/stat')
  const children = systemFile(`/proc/self/task/${process.pid}/children`)
  let waitedFor = childFaults()
  /** Processes that the project started while it was loaded: they serve all its attempts. */
  const residents = new Set(mayFork() ? members() : [process.pid])

  function members(): number[] {
    return groupMembers(process.pid, marker === undefined ? undefined : `${MARKER}=${marker}`)
  }

  /** Page faults of all children that were waited for; undefined where the system does not report it. */
  function childFaults(): string | undefined {
    return processStat(stat())?.childFaults
  }

  /** Without this module no JavaScript can start a process. */
  function mayFork(): boolean {
    for (; !canFork && loaded !== undefined && checked < loaded.length; checked++)
      canFork = loaded[checked] === 'NativeModule child_process'
    return canFork
  }

  /** A child that runs is listed. A child that has ended, and may have left others, has added its page faults. */
  function hasForked(): boolean {
    const before = waitedFor
    waitedFor = childFaults()
    return waitedFor === undefined || waitedFor !== before || children() !== ''
  }

  return () => mayFork() && hasForked() && members().some((pid) => !residents.has(pid))
}

/** The modules of Node that are loaded, a list that grows; undefined where Node does not expose it. */
function loadedModules(): readonly unknown[] | undefined {
  const list = 'moduleLoadList' in process ? process.moduleLoadList : undefined
  return Array.isArray(list) ? list : undefined
}

/** A file of the system that is read again and again: opened once, a read costs two microseconds. */
function systemFile(name: string): () => string | undefined {
  const buffer = Buffer.alloc(4_096)
  let fd: number | undefined
  return () => {
    try {
      fd ??= openSync(name, 'r')
      return buffer.toString('latin1', 0, readSync(fd, buffer, 0, buffer.length, 0))
    } catch {
      return undefined
    }
  }
}
